// cudnn_graph.h under the name that carries its major version.
#include "cudnn_graph.h"
