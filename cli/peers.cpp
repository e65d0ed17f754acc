// SPDX-License-Identifier: Apache-2.0
#include "peers.hpp"

#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <nlohmann/json.hpp>

#include "base/thread_pool.hpp"
#include "command.hpp"
#include "graph/op.hpp"
#include "graph/ops/list.hpp"
#include "graph_json.hpp"
#include "peer_onednn.hpp"

namespace tsr::cli {

std::function<void()> onednn_peer(const Graph& g) {
  const Node& n = g.node(0);
  auto in = [&](int slot) -> const Tensor& { return g.tensor(n.in[static_cast<size_t>(slot)]); };
  const Tensor& y = g.tensor(n.out[0]);
  if (n.op == &ops::matmul) {
    const Dims &a = in(0).dims, &b = in(1).dims;
    bool single = in(0).numel() == a[a.size() - 1] * a[a.size() - 2];
    return single ? peer_matmul(a[a.size() - 2], b[b.size() - 1], a[a.size() - 1], in(0).dtype) : nullptr;
  }
  if (n.op == &ops::conv_fprop || n.op == &ops::conv_dgrad || n.op == &ops::conv_wgrad) {
    const auto& o = attrs<tessera::ConvOptions>(n);
    bool forward = n.op == &ops::conv_fprop, data = n.op == &ops::conv_dgrad;
    const Tensor &x = forward ? in(0) : data ? y : in(1), &w = forward || data ? in(1) : y;
    auto square = [](const Ints& v, int64_t fallback) { return v.empty() ? fallback : v[0]; };
    if (x.rank() != 4 || x.dims[1] != w.dims[1]) return nullptr;
    return peer_conv(forward ? PeerConv::fprop
                     : data  ? PeerConv::dgrad
                             : PeerConv::wgrad,
                     {x.dims[0], x.dims[1], x.dims[2], x.dims[3], w.dims[0], w.dims[2], w.dims[3], square(o.stride, 1),
                      square(o.pad, 0)},
                     x.dtype);
  }
  if (n.op == &ops::rnn_fwd && attrs<tessera::RnnOptions>(n).mode == tessera::RnnMode::lstm) {
    const Dims& x = in(0).dims;
    return peer_lstm(x[0], x[1], x[2], attrs<tessera::RnnOptions>(n).hidden);
  }
  return nullptr;
}

TorchPeer::TorchPeer(const std::string& python) {
  int down[2], up[2];
  if (pipe(down) != 0 || pipe(up) != 0) return;
  child_ = fork();
  if (child_ == 0) {
    dup2(down[0], STDIN_FILENO);
    dup2(up[1], STDOUT_FILENO);
    for (int fd : {down[0], down[1], up[0], up[1]}) close(fd);
    if (!std::freopen("/dev/null", "w", stderr)) _exit(127);
    execlp(python.c_str(), python.c_str(), TESSERA_SOURCE_DIR "/bench/torch_peer.py", nullptr);
    _exit(127);
  }
  close(down[0]);
  close(up[1]);
  std::signal(SIGPIPE, SIG_IGN);  // a peer that ended is an absent peer
  to_ = fdopen(down[1], "w");
  from_ = fdopen(up[0], "r");
  Json hello = Json::parse(line(), nullptr, false);
  if (hello.is_object()) version_ = hello.value("torch", "");
}

TorchPeer::~TorchPeer() {
  if (to_) std::fclose(to_);
  if (from_) std::fclose(from_);
  if (child_ > 0) waitpid(child_, nullptr, 0);
}

std::string TorchPeer::line() {
  std::string s;
  for (int c = std::fgetc(from_); c != EOF && c != '\n'; c = std::fgetc(from_)) s += static_cast<char>(c);
  return s;
}

std::optional<double> TorchPeer::measure(const Graph& g, double seconds) {
  if (version_.empty()) return std::nullopt;
  Json j = graph_json(g);
  j["threads"] = thread_count();
  j["seconds"] = seconds;
  std::fputs((j.dump() + "\n").c_str(), to_);
  std::fflush(to_);
  Json answer = Json::parse(line(), nullptr, false);
  reason_ = answer.is_object() ? answer.value("reason", "") : "the process ended";
  if (!answer.is_object() || !answer.contains("ms")) return std::nullopt;
  return answer["ms"].get<double>() * 1e-3;
}

}  // namespace tsr::cli
