// The former name of cudnn_graph.h.
#ifndef CUDNN_BACKEND_H_
#define CUDNN_BACKEND_H_

#include "cudnn_graph.h"

#endif
