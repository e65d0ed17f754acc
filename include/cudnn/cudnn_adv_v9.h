// cudnn_adv.h under the name that carries its major version.
#include "cudnn_adv.h"
