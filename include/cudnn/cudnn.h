// All of cuDNN's interface: the graph API and every group of the older calls.
#ifndef CUDNN_H_
#define CUDNN_H_

#include "cudnn_adv.h"
#include "cudnn_cnn.h"
#include "cudnn_gnn_ops.h"
#include "cudnn_graph.h"
#include "cudnn_ops.h"
#include "cudnn_subquadratic_ops.h"
#include "cudnn_version.h"

#endif
