// SPDX-License-Identifier: Apache-2.0
// Graphs as front ends send them (tests/capi/recorded): their descriptors are made through the C interface, planned by
// its heuristics, executed, and the results compared with the definitions of the same graph in text form.
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

#include "graph/text.hpp"
#include "graph_client.hpp"
#include "harness/cases.hpp"
#include "harness/compare.hpp"

namespace {

using client::Failure;
using client::Piece;

// A graph that our library refuses, and why that is right.
const std::map<std::string, std::string> kRefused = {
    {"C++ batchnorm training + peer stats [9.27=9.19]", "statistics of 2 devices"},
};

std::vector<std::string> split(const std::string& s, char at) {
  std::vector<std::string> parts;
  std::istringstream in(s);
  for (std::string p; std::getline(in, p, at);) parts.push_back(p);
  return parts;
}

// Values of an attribute, as the program's memory holds them.
void set_values(Piece& d, int name, cudnnBackendAttributeType_t type, const std::vector<std::string>& text) {
  auto as = [&](auto convert) {
    std::vector<decltype(convert(text[0]))> v;
    for (const std::string& t : text) v.push_back(convert(t));
    d.set(name, type, v);
  };
  switch (type) {
    case CUDNN_TYPE_FLOAT:
      return as([](const std::string& t) { return std::stof(t); });
    case CUDNN_TYPE_DOUBLE:
      return as([](const std::string& t) { return std::stod(t); });
    case CUDNN_TYPE_INT64:
      return as([](const std::string& t) { return static_cast<int64_t>(std::stoll(t)); });
    case CUDNN_TYPE_BOOLEAN:
      return as([](const std::string& t) { return static_cast<char>(t == "1"); });
    case CUDNN_TYPE_FRACTION:
      return as([](const std::string& t) {
        auto parts = split(t, '/');
        return cudnnFraction_t{std::stoll(parts[0]), std::stoll(parts[1])};
      });
    case CUDNN_TYPE_VOID_PTR: {  // a constant
      float value = std::stof(text[0]);
      d.set(name, type, std::vector<void*>{&value});
      return;
    }
    default:  // INT32 and enumerations
      return as([](const std::string& t) { return std::stoi(t); });
  }
}

// The descriptors of one graph, by their names.
class Recording {
 public:
  Recording(const std::vector<std::string>& lines, cudnnHandle_t handle) {
    for (const std::string& line : lines) {
      std::istringstream in(line);
      std::string name, token;
      int type;
      in >> name >> type;
      auto d = std::make_unique<Piece>(type);
      while (in >> token) set(*d, token);
      if (name == "graph") d->set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, std::vector{handle});
      d->finalize();
      parts_[name] = std::move(d);
    }
  }
  const Piece& graph() const { return *parts_.at("graph"); }

 private:
  // ATTRIBUTE=#NAME,.. or ATTRIBUTE=TYPE:VALUE,..
  void set(Piece& d, const std::string& token) {
    size_t equal = token.find('=');
    int name = std::stoi(token.substr(0, equal));
    std::string value = token.substr(equal + 1);
    if (value[0] == '#') {
      std::vector<cudnnBackendDescriptor_t> others;
      for (const std::string& other : split(value, ',')) others.push_back(*parts_.at(other.substr(1)));
      d.set(name, others);
      return;
    }
    size_t colon = value.find(':');
    set_values(d, name, static_cast<cudnnBackendAttributeType_t>(std::stoi(value.substr(0, colon))),
               split(value.substr(colon + 1), ','));
  }
  std::map<std::string, std::unique_ptr<Piece>> parts_;
};

// Tensors of the text form are named by their unique ids: u5.
void run(const std::vector<std::string>& lines, const tsr::Case& c, cudnnHandle_t handle) {
  tsr::Graph g = tsr::parse_graph(c.text);
  g.finalize();
  tsr::GraphBuffers actual(g, c.data);
  std::vector<void*> table = actual.table(), pointers;
  std::vector<int64_t> uids;
  for (tsr::TensorId t = 0; t < g.tensor_count(); ++t) {
    if (!table[static_cast<size_t>(t)]) continue;
    uids.push_back(std::stoll(g.tensor(t).name.substr(1)));
    pointers.push_back(table[static_cast<size_t>(t)]);
  }
  Recording recording(lines, handle);
  client::run_first_plan(recording.graph(), handle, uids, pointers);
  tsr::Oracle oracle(g, c.data);
  EXPECT_EQ("", tsr::compare(g, oracle, actual));
  EXPECT_EQ("", actual.damage());
}

void run_file(const std::string& name) {
  std::string path = std::string(TESSERA_RECORDED) + "/" + name;
  std::vector<tsr::Case> cases = tsr::read_cases(path);
  ASSERT_FALSE(cases.empty());
  client::Handle handle;
  std::ifstream in(path);
  std::vector<std::string> lines;
  std::string title, line;
  size_t next = 0;
  for (int at = 1; std::getline(in, line); ++at) {
    if (line.rfind("#% ", 0) == 0) {
      lines.push_back(line.substr(3));
    } else if (line.rfind("# ", 0) == 0) {
      title = line.substr(2);
    } else if (next < cases.size() && at == cases[next].line) {
      SCOPED_TRACE(title);
      auto refused = kRefused.find(title);
      try {
        run(lines, cases[next], handle);
        EXPECT_EQ(kRefused.end(), refused) << "this graph was expected to be refused";
      } catch (const Failure& f) {
        bool expected = refused != kRefused.end() && client::is_not_supported(f.status) &&
                        f.text.find(refused->second) != std::string::npos;
        EXPECT_TRUE(expected) << f.status << ": " << f.text;
      }
      lines.clear();
      ++next;
    }
  }
  EXPECT_EQ(cases.size(), next);
}

TEST(Recorded, Frontend123) { run_file("frontend_1_23.txt"); }
TEST(Recorded, Frontend132) { run_file("frontend_1_32.txt"); }

}  // namespace
