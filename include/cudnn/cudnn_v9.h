// cudnn.h under the name that carries its major version.
#include "cudnn.h"
