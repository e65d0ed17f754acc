// cudnn_gnn_ops.h under the name that carries its major version.
#include "cudnn_gnn_ops.h"
