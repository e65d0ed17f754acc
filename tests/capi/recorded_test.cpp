// SPDX-License-Identifier: Apache-2.0
// Graphs as front ends send them (tests/capi/recorded): their descriptors are made through the C interface, planned by
// its heuristics, executed, and the results compared with the definitions of the same graph in text form.
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

#include "client.hpp"
#include "graph/text.hpp"
#include "harness/cases.hpp"
#include "harness/compare.hpp"

namespace {

// A graph that our library refuses, and why that is right.
const std::map<std::string, std::string> kRefused = {
    {"C++ batchnorm training + peer stats [9.27=9.19]", "statistics of 2 devices"},
};

struct Failure {
  cudnnStatus_t status;
  std::string text;
};

void must(cudnnStatus_t s) {
  if (s != CUDNN_STATUS_SUCCESS) throw Failure{s, client::last_error()};
}

class Part {
 public:
  explicit Part(int type) { must(cudnnBackendCreateDescriptor(static_cast<cudnnBackendDescriptorType_t>(type), &d_)); }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  ~Part() { cudnnBackendDestroyDescriptor(d_); }
  template <class T>
  void set(int name, cudnnBackendAttributeType_t type, const std::vector<T>& v) {
    must(cudnnBackendSetAttribute(d_, static_cast<cudnnBackendAttributeName_t>(name), type,
                                  static_cast<int64_t>(v.size()), v.data()));
  }
  void set(int name, const std::vector<cudnnBackendDescriptor_t>& v) { set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, v); }
  void finalize() { must(cudnnBackendFinalize(d_)); }
  operator cudnnBackendDescriptor_t() const { return d_; }

 private:
  cudnnBackendDescriptor_t d_ = nullptr;
};

std::vector<std::string> split(const std::string& s, char at) {
  std::vector<std::string> parts;
  std::istringstream in(s);
  for (std::string p; std::getline(in, p, at);) parts.push_back(p);
  return parts;
}

// Values of an attribute, as the program's memory holds them.
void set_values(Part& d, int name, cudnnBackendAttributeType_t type, const std::vector<std::string>& text) {
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
      return d.set(name, type, std::vector<void*>{&value});
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
      auto d = std::make_unique<Part>(type);
      while (in >> token) set(*d, token);
      if (name == "graph") d->set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, std::vector{handle});
      d->finalize();
      parts_[name] = std::move(d);
    }
  }
  const Part& graph() const { return *parts_.at("graph"); }

 private:
  // ATTRIBUTE=#NAME,.. or ATTRIBUTE=TYPE:VALUE,..
  void set(Part& d, const std::string& token) {
    size_t equal = token.find('=');
    int name = std::stoi(token.substr(0, equal));
    std::string value = token.substr(equal + 1);
    if (value[0] == '#') {
      std::vector<cudnnBackendDescriptor_t> others;
      for (const std::string& other : split(value, ',')) others.push_back(*parts_.at(other.substr(1)));
      return d.set(name, others);
    }
    size_t colon = value.find(':');
    set_values(d, name, static_cast<cudnnBackendAttributeType_t>(std::stoi(value.substr(0, colon))),
               split(value.substr(colon + 1), ','));
  }
  std::map<std::string, std::unique_ptr<Part>> parts_;
};

// The first plan that the heuristics propose.
void execute(const Part& graph, cudnnHandle_t handle, const std::vector<int64_t>& uids,
             const std::vector<void*>& pointers) {
  Part heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, {graph});
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, std::vector{CUDNN_HEUR_MODE_A});
  heuristics.finalize();
  Part config(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  cudnnBackendDescriptor_t result = config;
  int64_t count = 0;
  must(cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                                &result));
  if (count != 1) throw Failure{CUDNN_STATUS_NOT_SUPPORTED, "the heuristics propose nothing"};
  Part plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, std::vector{handle});
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, {config});
  plan.finalize();
  int64_t bytes = 0;
  must(cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count, &bytes));
  tsr::GuardedBuffer workspace(static_cast<size_t>(bytes));
  workspace.poison();
  Part pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, uids);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers);
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR,
           std::vector<void*>{bytes > 0 ? workspace.data() : nullptr});
  pack.finalize();
  must(cudnnBackendExecute(handle, plan, pack));
  if (!workspace.intact()) throw Failure{CUDNN_STATUS_EXECUTION_FAILED, "memory around the workspace was overwritten"};
}

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
  execute(recording.graph(), handle, uids, pointers);
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
