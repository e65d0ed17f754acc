// SPDX-License-Identifier: Apache-2.0
// Recorded graphs with mistakes in them: values, lists and references changed at random. Whatever they become, they are
// planned and run, or refused with a text, and the library does not blame itself. FUZZ_ROUNDS and FUZZ_SEED ask for
// others.
#include <algorithm>
#include <cstdlib>

#include "recording.hpp"

namespace {

using client::Piece;
using client::split;

class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}

  client::RecordedGraph mutate(client::RecordedGraph g) {
    for (size_t n = 1 + below(3); n > 0; --n) {
      std::string& line = g.lines[below(g.lines.size())];
      std::vector<std::string> tokens = split(line, ' ');
      if (tokens.size() < 3) continue;
      size_t at = 2 + below(tokens.size() - 2);  // after the name and the type
      if (below(10) == 0)
        tokens.erase(tokens.begin() + static_cast<int64_t>(at));
      else
        tokens[at] = changed(tokens[at], g);
      line = joined(tokens, ' ');
    }
    return g;
  }

 private:
  size_t below(size_t n) { return random_() % n; }
  std::string number() {
    static const char* const kNumbers[] = {
        "0", "1", "2", "3", "4", "7", "8", "12", "16", "100", "-1", "2147483647", "9223372036854775807"};
    return kNumbers[below(std::size(kNumbers))];
  }
  static std::string joined(const std::vector<std::string>& parts, char with) {
    std::string s;
    for (const std::string& p : parts) s += (s.empty() ? "" : std::string(1, with)) + p;
    return s;
  }
  // ATTRIBUTE=#NAME,.. or ATTRIBUTE=TYPE:VALUE,..
  std::string changed(const std::string& token, const client::RecordedGraph& g) {
    size_t equal = token.find('='), colon = token.find(':');
    if (colon == std::string::npos)
      return token.substr(0, equal + 1) + "#" + split(g.lines[below(g.lines.size())], ' ')[0];
    bool fraction = token.find('/') != std::string::npos;
    auto value = [&] { return fraction ? number() + "/" + number() : number(); };
    std::vector<std::string> values = split(token.substr(colon + 1), ',');
    values[below(values.size())] = value();
    if (below(8) == 0) values.assign(values.size(), value());
    if (below(8) == 0) values.push_back(value());
    if (below(8) == 0 && values.size() > 1) values.pop_back();
    return token.substr(0, colon + 1) + joined(values, ',');
  }
  std::mt19937 random_;
};

// Runs a plan with memory that is as long as the descriptors say, to the byte, and all zeros: offsets and lengths too.
// False: it would take too much memory or time.
bool execute(const client::Recording& r, const client::Piece& plan, cudnnHandle_t handle) {
  constexpr double kMost = 1 << 20;
  std::vector<client::TensorFacts> tensors = r.tensors();
  for (const client::TensorFacts& t : tensors)
    if (t.elements > kMost || t.bytes > 8 * kMost) return false;
  auto workspace = plan.one<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
  if (workspace > int64_t{1} << 26) return false;
  // Where two tensors have the same id, and one of them is left out of the plan, there is memory for either.
  std::sort(tensors.begin(), tensors.end(), [](const auto& x, const auto& y) { return x.bytes > y.bytes; });
  std::vector<std::unique_ptr<client::Memory>> memory;
  std::vector<int64_t> uids;
  std::vector<void*> pointers;
  for (const client::TensorFacts& t : tensors) {
    if (t.hidden || std::count(uids.begin(), uids.end(), t.uid)) continue;
    memory.push_back(std::make_unique<client::Memory>(static_cast<size_t>(t.bytes)));
    uids.push_back(t.uid), pointers.push_back(memory.back()->data());
  }
  client::Workspace room(workspace);
  Piece pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.ints(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, uids);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers);
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, std::vector<void*>{room.data()});
  pack.finalize();
  client::must(cudnnBackendExecute(handle, plan, pack));
  return true;
}

// Nobody else takes part in an exchange of statistics.
bool waits_for_peer(const client::Failure& f) {
  return f.status == CUDNN_STATUS_EXECUTION_FAILED &&
         f.text.find("has not exchanged its statistics") != std::string::npos;
}

TEST(Mutations, AreRunOrRefused) {
  setenv("TESSERA_PEER_TIMEOUT", "0", 1);
  client::Handle handle;
  const char *seed = std::getenv("FUZZ_SEED"), *rounds = std::getenv("FUZZ_ROUNDS");
  Mutator mutator(seed ? static_cast<unsigned>(std::atoi(seed)) : 7);
  size_t count = rounds ? static_cast<size_t>(std::atoll(rounds)) : 600;
  std::vector<client::RecordedGraph> graphs = client::read_recorded("frontend_1_32.txt");
  ASSERT_FALSE(graphs.empty());
  size_t run = 0, refused = 0;
  for (size_t i = 0; i < count; ++i) {
    client::RecordedGraph g = mutator.mutate(graphs[i % graphs.size()]);
    if (std::getenv("FUZZ_TRACE")) std::ofstream(std::getenv("FUZZ_TRACE")) << g.text();
    try {
      client::Recording r(g.lines, handle);
      run += execute(r, *client::first_plan(r.graph(), handle), handle);
    } catch (const client::Failure& f) {
      EXPECT_TRUE(client::is_bad_param(f.status) || client::is_not_supported(f.status) || waits_for_peer(f))
          << g.title << ": " << f.status << " " << f.text;
      EXPECT_FALSE(f.text.empty());
      ++refused;
    } catch (const std::out_of_range&) {  // refers to what comes later
    }
  }
  unsetenv("TESSERA_PEER_TIMEOUT");
  EXPECT_GT(run, count / 12);
  EXPECT_GT(refused, count / 3);
}

}  // namespace
