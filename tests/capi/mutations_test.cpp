// SPDX-License-Identifier: Apache-2.0
// Recorded graphs with mistakes in them: values, lists and references changed at random. Whatever they become, they are
// planned or refused with a text, and the library does not blame itself.
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
    static const char* const kNumbers[] = {"0", "1", "2", "3", "4", "7", "8", "12", "16", "100", "-1", "2147483647"};
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
    if (below(8) == 0) values.push_back(value());
    if (below(8) == 0 && values.size() > 1) values.pop_back();
    return token.substr(0, colon + 1) + joined(values, ',');
  }
  std::mt19937 random_;
};

TEST(Mutations, ArePlannedOrRefused) {
  client::Handle handle;
  Mutator mutator(7);
  std::vector<client::RecordedGraph> graphs = client::read_recorded("frontend_1_32.txt");
  ASSERT_FALSE(graphs.empty());
  int planned = 0, refused = 0;
  for (size_t i = 0; i < 600; ++i) {
    client::RecordedGraph g = mutator.mutate(graphs[i % graphs.size()]);
    try {
      client::Recording r(g.lines, handle);
      client::first_plan(r.graph(), handle);
      ++planned;
    } catch (const client::Failure& f) {
      EXPECT_TRUE(client::is_bad_param(f.status) || client::is_not_supported(f.status))
          << g.title << ": " << f.status << " " << f.text;
      EXPECT_FALSE(f.text.empty());
      ++refused;
    } catch (const std::out_of_range&) {  // refers to what comes later
    }
  }
  EXPECT_GT(planned, 50);
  EXPECT_GT(refused, 200);
}

}  // namespace
