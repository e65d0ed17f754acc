// cudnn_subquadratic_ops.h under the name that carries its major version.
#include "cudnn_subquadratic_ops.h"
