// cudnn_backend.h under the name that carries its major version.
#include "cudnn_backend.h"
