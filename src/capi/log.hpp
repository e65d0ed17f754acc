// SPDX-License-Identifier: Apache-2.0
// Logging by cuDNN's environment variables (CUDNN_LOGLEVEL_DBG with CUDNN_LOGDEST_DBG, and the older
// CUDNN_LOGINFO_DBG, CUDNN_LOGWARN_DBG, CUDNN_LOGERR_DBG) and its callback. Each call is a message with its
// arguments (arguments.hpp); what it computes follows as a graph in text form, so that a line of the log is a
// reproducer.
#pragma once

#include <string>

#include "cudnn/cudnn.h"

namespace tsr {
class Graph;
}

namespace tsr::capi {

bool logs(cudnnSeverity_t severity);  // cheap: asked by every call
void log_message(cudnnSeverity_t severity, cudnnStatus_t status, const std::string& text);
void log_graph(const Graph& g);      // as information, if that is logged
std::string address(const void* p);  // as messages write it

}  // namespace tsr::capi
