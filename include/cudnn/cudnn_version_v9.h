// cudnn_version.h under the name that carries its major version.
#include "cudnn_version.h"
