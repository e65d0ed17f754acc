// SPDX-License-Identifier: Apache-2.0
// An explanation as one web page that needs nothing else: style and drawing are inside, nothing is fetched.
#include <algorithm>

#include "formats.hpp"

namespace tsr::cli {
namespace {

constexpr const char* kStyle = R"(
:root { --back:#f7f8fa; --card:#fff; --ink:#1c2430; --soft:#5d6878; --line:#dde2ea; --accent:#2f6fde; --good:#1a7f4b;
  --bad:#9a3b3b;
  --h0:#dbe8ff; --h1:#dcf3e4; --h2:#fdebd0; --h3:#efe2fb; --h4:#fbdfe4; --h5:#dff3f5; }
@media (prefers-color-scheme: dark) { :root { --back:#12161c; --card:#1b212a; --ink:#e6eaf0; --soft:#9aa6b5;
  --line:#2d3643; --accent:#7fb0ff;
  --good:#6fd39c; --bad:#f0a0a0; --h0:#22345a; --h1:#1e4030; --h2:#4b3a1e; --h3:#3a2a50; --h4:#4d2a32; --h5:#1f4145;
  } }
* { box-sizing:border-box; }
body { margin:0; padding:clamp(10px,2.5vw,28px); background:var(--back); color:var(--ink);
  font:15px/1.5 system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif; }
main { max-width:1200px; margin:0 auto; }
h1 { font-size:22px; margin:0 0 4px; } h2 { font-size:16px; margin:28px 0 10px; }
p { margin:0 0 14px; color:var(--soft); }
.cards { display:grid; grid-template-columns:repeat(auto-fit,minmax(150px,1fr)); gap:12px; margin:18px 0; }
.card, .panel { background:var(--card); border:1px solid var(--line); border-radius:10px; }
.card { padding:12px 14px; } .card b { display:block; font-size:20px; font-weight:600; }
.card span { color:var(--soft); font-size:13px; }
.panel { overflow:auto; padding:8px; } .panel svg { display:block; margin:0 auto; max-width:max(100%,640px); height:auto; }
table { border-collapse:collapse; width:100%; font-size:14px; }
th, td { text-align:left; vertical-align:top; padding:9px 12px; border-bottom:1px solid var(--line); }
th { color:var(--soft); font-weight:600; font-size:13px; } tr:last-child td { border-bottom:0; }
td.number { text-align:right; white-space:nowrap; font-variant-numeric:tabular-nums; } th.number { text-align:right; }
code, pre { font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace; }
pre { margin:0; padding:8px 10px; white-space:pre-wrap; overflow-wrap:anywhere; }
td code { display:block; overflow-wrap:anywhere; }
summary { cursor:pointer; color:var(--soft); } a { color:inherit; }
tr:target td, .step:target rect { background:var(--h2); stroke:var(--accent); }
/* On a phone a row is a card, and a cell a line with its heading. */
@media (max-width:760px) {
  thead { display:none; } table, tbody, tr, td { display:block; width:100%; }
  td { padding:3px 8px; border-bottom:0; } td.number { text-align:left; white-space:normal; }
  td[data-head]::before { content:attr(data-head) ": "; color:var(--soft); font-size:13px; }
  tr { border-bottom:1px solid var(--line); padding:6px 0; } tr.first { border-bottom:0; padding-bottom:0; }
}
.bar { height:5px; border-radius:3px; background:var(--line); margin-top:5px; min-width:90px; }
.bar i { display:block; height:5px; border-radius:3px; background:var(--accent); }
.yes { color:var(--good); } .no { color:var(--bad); } .answers { font-size:13px; }
tr.first td { border-bottom:0; padding-bottom:2px; } .answers div { margin-bottom:2px; }
svg text { font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace; fill:var(--ink); }
.step rect { stroke:var(--line); } .step text { font-weight:600; font-size:12px; fill:var(--soft); }
.hue0 rect { fill:var(--h0); } .hue1 rect { fill:var(--h1); } .hue2 rect { fill:var(--h2); }
.hue3 rect { fill:var(--h3); } .hue4 rect { fill:var(--h4); } .hue5 rect { fill:var(--h5); }
.op rect { fill:var(--card); stroke:var(--soft); }
.pill rect { fill:var(--back); stroke:var(--soft); stroke-dasharray:3 3; }
.pill text { fill:var(--soft); font-size:12px; }
.edge { fill:none; stroke:var(--soft); stroke-width:1.3; } .edge:hover { stroke:var(--accent); stroke-width:3; }
.arrow { fill:var(--soft); }
)";

std::string card(const std::string& value, const std::string& what) {
  return "<div class=\"card\"><b>" + escape_html(value) + "</b><span>" + escape_html(what) + "</span></div>\n";
}

std::string answers_html(const std::vector<EngineAnswer>& answers, bool accepted) {
  std::string s;
  for (const EngineAnswer& a : answers) {
    if (a.accepted != accepted) continue;
    std::string text = a.accepted ? cat("yes, ", human_seconds(a.seconds), a.config == "default" ? "" : ", " + a.config,
                                        a.chosen ? " (chosen)" : "")
                                  : "no, " + a.reason;
    s += cat("<div><b>", escape_html(a.engine), "</b> <span class=\"", a.accepted ? "yes" : "no", "\">",
             escape_html(text), "</span></div>");
  }
  return s;
}

// Who accepted, and, folded, who did not.
std::string answers_html(const std::vector<EngineAnswer>& answers) {
  int64_t refusals = std::count_if(answers.begin(), answers.end(), [](const EngineAnswer& a) { return !a.accepted; });
  std::string s = answers_html(answers, true);
  if (refusals == 0) return s;
  return cat(s, "<details><summary>", refusals, refusals == 1 ? " engine declined" : " engines declined", "</summary>",
             answers_html(answers, false), "</details>");
}

std::string names(const Explanation& e, const std::vector<int>& ids) {
  std::string s;
  for (int t : ids) {
    const ExplainedTensor& x = e.tensors[static_cast<size_t>(t)];
    if (x.kind != ExplainedTensor::constant) s += "<code>" + escape_html(x.name + " " + x.type) + "</code>";
  }
  return s;
}

double shown_seconds(const ExplainedStep& s) { return s.measured > 0 ? s.measured : s.seconds; }

// Percent of the machine's limit that the step reaches.
std::string limit_html(const ExplainedStep& s) {
  double share = shown_seconds(s) > 0 ? 100 * s.limits.seconds() / shown_seconds(s) : 0;
  return cat(static_cast<int>(share + 0.5), "% of ", s.limits.memory >= s.limits.arithmetic ? "memory" : "arithmetic");
}

// A cell of the table of steps, with its heading for narrow screens.
std::string cell(const char* head, const std::string& content) {
  return cat("<td data-head=\"", head, "\">", content, "</td>");
}
std::string number_cell(const char* head, const std::string& content) {
  return cat("<td class=\"number\" data-head=\"", head, "\">", content, "</td>");
}

std::string steps_table(const Explanation& e) {
  double slowest = 0;
  for (const ExplainedStep& s : e.steps) slowest = std::max(slowest, shown_seconds(s));
  std::string out =
      "<div class=\"panel\"><table><thead><tr><th>Step</th><th>Operations</th><th>Reads</th><th>Writes</th><th "
      "class=\"number\">Time</th><th class=\"number\">Limit</th><th class=\"number\">Moved</th><th "
      "class=\"number\">Arithmetic</th><th "
      "class=\"number\">Kernels</th><th class=\"number\">Scratch</th></tr></thead><tbody>\n";
  for (size_t i = 0; i < e.steps.size(); ++i) {
    const ExplainedStep& s = e.steps[i];
    auto statements = [&](const std::vector<int>& nodes) {
      std::string text;
      for (int n : nodes) text += "<code>" + escape_html(e.nodes[static_cast<size_t>(n)].text) + "</code>";
      return text;
    };
    for (const ExplainedStages& x : e.stages)
      if (x.first_step == static_cast<int>(i))
        out += cat("<tr class=\"first\"><td><b>", x.first_step + 1, " to ", x.last_step + 1, "</b> stages of ",
                   escape_html(x.name), "</td><td colspan=\"9\">", statements(x.nodes),
                   "</td></tr>\n<tr><td></td><td colspan=\"9\" class=\"answers\">", answers_html(x.answers),
                   "</td></tr>\n");
    double share = slowest > 0 ? 100 * shown_seconds(s) / slowest : 0;
    out += cat("<tr class=\"first\" id=\"row", i + 1, "\"><td><a href=\"#step", i + 1, "\"><b>", i + 1, "</b></a> ",
               escape_html(s.engine), "</td>", cell("Operations", statements(s.nodes)),
               cell("Reads", names(e, s.inputs)), cell("Writes", names(e, s.outputs)),
               number_cell("Time", cat(human_seconds(s.seconds), " modelled",
                                       s.measured > 0 ? "<br>" + human_seconds(s.measured) + " measured" : "",
                                       "<div class=\"bar\"><i style=\"width:", share, "%\"></i></div>")),
               number_cell("Limit", limit_html(s)), number_cell("Moved", human_bytes(s.bytes)),
               number_cell("Arithmetic", human_count(s.flops)), number_cell("Kernels", std::to_string(s.kernels)),
               number_cell("Scratch", human_bytes(static_cast<double>(s.workspace))),
               "</tr>\n<tr><td></td><td colspan=\"9\" class=\"answers\">", answers_html(s.answers), "</td></tr>\n");
  }
  return out + "</tbody></table></div>\n";
}

std::string boundaries_table(const Explanation& e) {
  if (e.boundaries.empty()) return "";
  std::string out = "<h2>Why the steps are not joined</h2>\n<div class=\"panel\"><table><tbody>\n";
  for (const Boundary& b : e.boundaries) {
    std::string answers = b.answers.empty() ? "no engine here joins operations" : answers_html(b.answers);
    out += cat("<tr><td>steps ", b.from + 1, " and ", b.to + 1, "</td><td class=\"answers\">", answers, "</td></tr>\n");
  }
  return out + "</tbody></table></div>\n";
}

}  // namespace

std::string escape_html(const std::string& text) {
  std::string s;
  for (char c : text) {
    if (c == '&')
      s += "&amp;";
    else if (c == '<')
      s += "&lt;";
    else if (c == '>')
      s += "&gt;";
    else if (c == '"')
      s += "&quot;";
    else
      s += c;
  }
  return s;
}

std::string to_html(const Explanation& e, const std::string& graph_text) {
  std::string s =
      cat("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
          "content=\"width=device-width, initial-scale=1\">\n",
          "<title>Plan for ", escape_html(e.device), "</title><style>", kStyle, "</style></head><body><main>\n");
  s += cat("<h1>Plan for ", escape_html(e.device), "</h1>\n<p>", e.operations,
           e.operations == 1 ? " operation in " : " operations in ", e.steps.size(),
           e.steps.size() == 1 ? " step" : " steps",
           e.deterministic ? ", the same bits every time" : ", not deterministic",
           e.recognised ? "; composite operations, views or packed sequences were rewritten" : "",
           ".</p>\n<div class=\"cards\">\n");
  if (e.measured > 0) s += card(human_seconds(e.measured), "measured time");
  s += card(human_seconds(e.seconds), "modelled time") + card(human_bytes(e.bytes), "moved") +
       card(human_bytes(e.unfused_bytes), "moved if every operation used memory") +
       card(human_count(e.flops), "arithmetic operations") + card(std::to_string(e.kernels), "kernels") +
       card(human_bytes(static_cast<double>(e.workspace)), "workspace");
  s +=
      "</div>\n<div class=\"panel\">\n" + to_svg(e) + "</div>\n<h2>Steps</h2>\n" + steps_table(e) + boundaries_table(e);
  s += "<h2>Graph</h2>\n<div class=\"panel\"><pre>" + escape_html(graph_text) + "</pre></div>\n";
  return s + "</main></body></html>\n";
}

}  // namespace tsr::cli
