// cudnn_cnn.h under the name that carries its major version.
#include "cudnn_cnn.h"
