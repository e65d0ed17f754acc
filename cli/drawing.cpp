// SPDX-License-Identifier: Apache-2.0
// Draws a plan as SVG, top to bottom. Every step is a box around its operations; inputs and outputs are pills. The rows
// of boxes follow the dependencies of the steps, the ranks inside a box those of its operations. An edge that passes
// ranks gets an invisible item in each, so that it has room of its own; then sweeps move everything towards its
// neighbours.
#include <algorithm>

#include "formats.hpp"

namespace tsr::cli {
namespace {

constexpr double kHeight = 30, kRankGap = 30, kItemGap = 18, kPad = 14, kHeader = 24, kGroupGap = 28, kMargin = 16;

struct Item {
  int group = 0, rank = 0;   // rank counts over the whole drawing
  double width = 10, x = 0;  // x of the centre
  std::string label, tip;    // both empty: an edge passes here
  bool pill = false;
  std::vector<int> up, down;
};

struct Group {
  int row = 0, step = -1;  // step -1: a pill or a passing edge
  std::vector<std::vector<int>> ranks;
  double width = 0, left = 0;
};

size_t at(int i) { return static_cast<size_t>(i); }
double text_width(const std::string& s) { return 7.4 * static_cast<double>(s.size()) + 22; }

// Centres near `wanted`, in that order and without overlap.
std::vector<double> spread(const std::vector<double>& wanted, const std::vector<double>& width, double gap) {
  std::vector<size_t> order(wanted.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return wanted[a] < wanted[b]; });
  std::vector<double> centre(wanted.size());
  double right = -1e18, drift = 0;
  for (size_t i : order) {
    centre[i] = std::max(wanted[i], right + gap + width[i] / 2);
    right = centre[i] + width[i] / 2;
    drift += wanted[i] - centre[i];
  }
  for (double& c : centre) c += drift / static_cast<double>(centre.size());
  return centre;
}

class Drawing {
 public:
  explicit Drawing(const Explanation& e) : e_(e) {
    make_rows();
    make_items();
    make_edges();
    arrange();
  }

  std::string svg() const {
    double width = 0, height = y_of(rank_count_ - 1) + kHeight + kPad + kMargin;
    for (const Group& g : groups_) width = std::max(width, g.left + g.width + kMargin);
    std::string s = cat("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", width, " ", height, "\" width=\"",
                        width, "\" height=\"", height, "\" role=\"img\" aria-label=\"the graph and its steps\">\n",
                        "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" "
                        "markerHeight=\"7\" orient=\"auto\">"
                        "<path d=\"M0,0 L8,4 L0,8 z\" class=\"arrow\"/></marker></defs>\n");
    for (const Group& g : groups_)
      if (g.step >= 0) s += box(g);
    for (const auto& [path, tip] : edges_) s += edge(path, tip);
    for (const Item& i : items_)
      if (!i.label.empty()) s += item(i);
    return s + "</svg>\n";
  }

 private:
  // Which row of boxes each step belongs to, and how many ranks its operations take.
  void make_rows() {
    level_.assign(e_.steps.size(), 0);
    depth_.assign(e_.nodes.size(), 0);
    std::vector<int> ranks_of_step(e_.steps.size(), 1);
    for (size_t s = 0; s < e_.steps.size(); ++s)
      for (int n : e_.steps[s].nodes)
        for (int t : e_.nodes[at(n)].reads) {
          int p = e_.tensors[at(t)].producer;
          if (p < 0) continue;
          int from = e_.nodes[at(p)].step;
          if (from == static_cast<int>(s))
            depth_[at(n)] = std::max(depth_[at(n)], depth_[at(p)] + 1);
          else
            level_[s] = std::max(level_[s], level_[at(from)] + 1);
          ranks_of_step[s] = std::max(ranks_of_step[s], depth_[at(n)] + 1);
        }
    int levels = 0;
    for (int l : level_) levels = std::max(levels, l + 1);
    // Rows alternate: pills, steps, pills, ... so that inputs and outputs sit next to their steps.
    std::vector<int> ranks(at(2 * levels + 1), 0);
    for (size_t s = 0; s < e_.steps.size(); ++s) {
      int& r = ranks[at(2 * level_[s] + 1)];
      r = std::max(r, ranks_of_step[s]);
    }
    for (size_t t = 0; t < e_.tensors.size(); ++t)
      if (int row = pill_row(static_cast<int>(t)); row >= 0) ranks[at(row)] = 1;
    first_rank_ = {0};
    for (int r : ranks) first_rank_.push_back(first_rank_.back() + r);
    rank_count_ = first_rank_.back();
  }

  int add_group(int row, int step, int ranks) {
    Group g;
    g.row = row;
    g.step = step;
    g.ranks.resize(at(ranks));
    groups_.push_back(std::move(g));
    return static_cast<int>(groups_.size()) - 1;
  }

  int add_item(int group, int rank, const std::string& label, const std::string& tip, bool pill = false) {
    Item i;
    i.group = group;
    i.rank = rank;
    i.label = label;
    i.tip = tip;
    i.pill = pill;
    if (!label.empty()) i.width = std::max(64.0, text_width(label));
    Group& g = groups_[at(group)];
    g.ranks[at(rank - first_rank_[at(g.row)])].push_back(static_cast<int>(items_.size()));
    items_.push_back(std::move(i));
    return static_cast<int>(items_.size()) - 1;
  }

  void make_items() {
    node_item_.assign(e_.nodes.size(), -1);
    tensor_item_.assign(e_.tensors.size(), -1);
    for (size_t s = 0; s < e_.steps.size(); ++s) {
      int row = 2 * level_[s] + 1, ranks = first_rank_[at(row + 1)] - first_rank_[at(row)];
      int group = add_group(row, static_cast<int>(s), ranks);
      for (int n : e_.steps[s].nodes)
        node_item_[at(n)] =
            add_item(group, first_rank_[at(row)] + depth_[at(n)], e_.nodes[at(n)].op, e_.nodes[at(n)].text);
    }
    for (size_t t = 0; t < e_.tensors.size(); ++t) {
      const ExplainedTensor& x = e_.tensors[t];
      int row = pill_row(static_cast<int>(t));
      if (row < 0) continue;
      std::string label = x.name + "  " + x.type;
      tensor_item_[t] = add_item(add_group(row, -1, 1), first_rank_[at(row)], label, human_bytes(x.bytes), true);
    }
  }

  // Row of a tensor that is drawn, or -1. Literals would only clutter the picture.
  int pill_row(int t) const {
    const ExplainedTensor& x = e_.tensors[at(t)];
    if (x.kind == ExplainedTensor::output) {
      int step = e_.nodes[at(x.producer)].step;
      return step < 0 ? -1 : 2 * level_[at(step)] + 2;
    }
    if (x.kind != ExplainedTensor::input && x.kind != ExplainedTensor::scalar) return -1;
    int row = -1;
    for (const ExplainedNode& n : e_.nodes) {
      bool reads = n.step >= 0 && std::find(n.reads.begin(), n.reads.end(), t) != n.reads.end();
      if (reads && (row < 0 || 2 * level_[at(n.step)] < row)) row = 2 * level_[at(n.step)];
    }
    return row;
  }

  void make_edges() {
    for (size_t n = 0; n < e_.nodes.size(); ++n) {
      if (e_.nodes[n].step < 0) continue;
      for (int t : e_.nodes[n].reads) {
        int p = e_.tensors[at(t)].producer;
        int from = p >= 0 ? node_item_[at(p)] : tensor_item_[at(t)];
        if (from >= 0) connect(from, node_item_[n], t);
      }
      for (int t : e_.nodes[n].writes)
        if (tensor_item_[at(t)] >= 0) connect(node_item_[n], tensor_item_[at(t)], t);
    }
  }

  void connect(int from, int to, int tensor) {
    std::vector<int> path = {from};
    int passing = -1, passing_row = -1;
    for (int rank = items_[at(from)].rank + 1; rank < items_[at(to)].rank; ++rank) {
      int row = 0;
      while (first_rank_[at(row + 1)] <= rank) ++row;
      int group = -1;
      for (int end : {from, to})
        if (groups_[at(items_[at(end)].group)].row == row) group = items_[at(end)].group;
      if (group < 0) {
        if (passing_row != row)
          passing = add_group(row, -1, first_rank_[at(row + 1)] - first_rank_[at(row)]), passing_row = row;
        group = passing;
      }
      path.push_back(add_item(group, rank, "", ""));
    }
    path.push_back(to);
    for (size_t i = 0; i + 1 < path.size(); ++i) {
      items_[at(path[i])].down.push_back(path[i + 1]);
      items_[at(path[i + 1])].up.push_back(path[i]);
    }
    edges_.emplace_back(path, e_.tensors[at(tensor)].name + " " + e_.tensors[at(tensor)].type);
  }

  double wanted(int i, bool from_above) const {
    const auto& near = from_above ? items_[at(i)].up : items_[at(i)].down;
    if (near.empty()) return items_[at(i)].x;
    double sum = 0;
    for (int n : near) sum += items_[at(n)].x;
    return sum / static_cast<double>(near.size());
  }

  void arrange() {
    for (Group& g : groups_) {
      for (const auto& rank : g.ranks) {
        double w = -kItemGap;
        for (int i : rank) w += items_[at(i)].width + kItemGap;
        g.width = std::max(g.width, w);
      }
      // Edges arrive in the middle: the title keeps to the left half.
      if (g.step >= 0) g.width = std::max(g.width + 2 * kPad, 2 * text_width(title(g)));
    }
    int rows = static_cast<int>(first_rank_.size()) - 1;
    for (int sweep = 0; sweep < 8; ++sweep)
      for (int k = 0; k < rows; ++k) place_row(sweep % 2 ? rows - 1 - k : k, sweep % 2 == 0);
    double left = 1e18;
    for (const Group& g : groups_) left = std::min(left, g.left);
    for (Group& g : groups_) g.left += kMargin - left;
    for (Item& i : items_) i.x += kMargin - left;
  }

  void place_row(int row, bool from_above) {
    std::vector<Group*> members;
    std::vector<double> centre, width;
    for (Group& g : groups_) {
      if (g.row != row) continue;
      double sum = 0;
      int count = 0;
      for (const auto& rank : g.ranks)
        for (int i : rank)
          for (int n : from_above ? items_[at(i)].up : items_[at(i)].down)
            if (&groups_[at(items_[at(n)].group)] != &g) sum += items_[at(n)].x, ++count;
      members.push_back(&g);
      centre.push_back(count ? sum / count : g.left + g.width / 2);
      width.push_back(g.width);
    }
    std::vector<double> placed = spread(centre, width, kGroupGap);
    for (size_t k = 0; k < members.size(); ++k) {
      Group& g = *members[k];
      g.left = placed[k] - g.width / 2;
      for (size_t r = 0; r < g.ranks.size(); ++r)
        place_rank(g, g.ranks[from_above ? r : g.ranks.size() - 1 - r], from_above);
    }
  }

  void place_rank(const Group& g, const std::vector<int>& rank, bool from_above) {
    if (rank.empty()) return;
    std::vector<double> centre, width;
    for (int i : rank) centre.push_back(wanted(i, from_above)), width.push_back(items_[at(i)].width);
    std::vector<double> placed = spread(centre, width, kItemGap);
    // Within the frame: pushed from the right edge, then from the left; the frame is as wide as its widest rank.
    std::vector<size_t> order(rank.size());
    for (size_t k = 0; k < order.size(); ++k) order[k] = k;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return placed[a] < placed[b]; });
    double pad = g.step >= 0 ? kPad : 0, right = g.left + g.width - pad, left = g.left + pad;
    for (auto k = order.rbegin(); k != order.rend(); ++k) {
      placed[*k] = std::min(placed[*k], right - width[*k] / 2);
      right = placed[*k] - width[*k] / 2 - kItemGap;
    }
    for (size_t k : order) {
      placed[k] = std::max(placed[k], left + width[k] / 2);
      left = placed[k] + width[k] / 2 + kItemGap;
    }
    for (size_t k = 0; k < rank.size(); ++k) items_[at(rank[k])].x = placed[k];
  }

  // Top of the items of a rank. Rows of steps need room for the frame and its header.
  double y_of(int rank) const {
    double y = kMargin + rank * (kHeight + kRankGap);
    for (size_t row = 1; row + 1 < first_rank_.size(); row += 2) {
      if (rank >= first_rank_[row]) y += kHeader;
      if (rank >= first_rank_[row + 1]) y += kPad;
    }
    return y;
  }

  std::string title(const Group& g) const { return cat(g.step + 1, "  ", e_.steps[at(g.step)].engine); }

  std::string box(const Group& g) const {
    const ExplainedStep& s = e_.steps[at(g.step)];
    int first = first_rank_[at(g.row)];
    int last = first;
    for (size_t r = 0; r < g.ranks.size(); ++r)
      for (int i : g.ranks[r])
        if (!items_[at(i)].label.empty()) last = first + static_cast<int>(r);
    double top = y_of(first) - kHeader, bottom = y_of(last) + kHeight + kPad;
    return cat("<a href=\"#row", g.step + 1, "\"><g id=\"step", g.step + 1, "\" class=\"step hue",
               engine_colour(s.engine), "\"><title>",
               escape_html(cat("step ", g.step + 1, ": ", s.engine, ", ", human_bytes(s.bytes), ", ",
                               human_seconds(s.seconds))),
               "</title><rect x=\"", g.left, "\" y=\"", top, "\" width=\"", g.width, "\" height=\"", bottom - top,
               "\" rx=\"10\"/><text x=\"", g.left + 12, "\" y=\"", top + 16, "\">", escape_html(title(g)),
               "</text></g></a>\n");
  }

  int engine_colour(const std::string& engine) const {
    // In order of first use; the page knows six hues.
    std::vector<std::string> seen;
    for (const ExplainedStep& s : e_.steps)
      if (std::find(seen.begin(), seen.end(), s.engine) == seen.end()) seen.push_back(s.engine);
    return static_cast<int>(std::find(seen.begin(), seen.end(), engine) - seen.begin()) % 6;
  }

  std::string edge(const std::vector<int>& path, const std::string& tip) const {
    double x = items_[at(path[0])].x, y = y_of(items_[at(path[0])].rank) + kHeight;
    std::string d = cat("M", x, ",", y);
    for (size_t k = 1; k < path.size(); ++k) {
      const Item& i = items_[at(path[k])];
      bool last = k + 1 == path.size();
      double ny = y_of(i.rank) + (last ? 0 : kHeight / 2), middle = (y + ny) / 2;
      d += cat(" C", x, ",", middle, " ", i.x, ",", middle, " ", i.x, ",", ny);
      x = i.x, y = ny;
    }
    return cat("<path class=\"edge\" d=\"", d, "\" marker-end=\"url(#tip)\"><title>", escape_html(tip),
               "</title></path>\n");
  }

  std::string item(const Item& i) const {
    double y = y_of(i.rank);
    return cat("<g class=\"", i.pill ? "pill" : "op", "\"><title>", escape_html(i.tip), "</title><rect x=\"",
               i.x - i.width / 2, "\" y=\"", y, "\" width=\"", i.width, "\" height=\"", kHeight, "\" rx=\"",
               i.pill ? kHeight / 2 : 6, "\"/><text x=\"", i.x, "\" y=\"", y + kHeight / 2 + 4.5,
               "\" text-anchor=\"middle\">", escape_html(i.label), "</text></g>\n");
  }

  const Explanation& e_;
  std::vector<int> level_, depth_;  // of steps among steps, of nodes inside their step
  std::vector<int> first_rank_;     // of each row, and one past the end
  int rank_count_ = 0;
  std::vector<Item> items_;
  std::vector<Group> groups_;
  std::vector<int> node_item_, tensor_item_;
  std::vector<std::pair<std::vector<int>, std::string>> edges_;
};

}  // namespace

std::string to_svg(const Explanation& e) { return Drawing(e).svg(); }

}  // namespace tsr::cli
