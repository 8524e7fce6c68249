#include "experiments/page.h"

#include <fmt/core.h>

#include <cstdint>

#include "base/files.h"
#include "base/text.h"

namespace lacuna {
namespace {

constexpr std::string_view kStyle = R"css(
*{box-sizing:border-box}
html{scroll-padding-top:1rem;-webkit-text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.6 ui-sans-serif,system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans','Liberation Sans','DejaVu Sans',sans-serif}
.frame{display:grid;grid-template-columns:13.5rem minmax(0,1fr);gap:3rem;max-width:80rem;margin:0 auto;padding:0 2rem}
nav{position:sticky;top:0;align-self:start;max-height:100vh;overflow:auto;padding:2.6rem 0;font-size:.875rem;line-height:1.4}
nav ol{list-style:none;margin:0;padding:0}
nav a{display:block;padding:.3rem 0 .3rem .8rem;color:var(--soft);text-decoration:none;border-left:2px solid var(--rule)}
nav a:hover,nav a:focus-visible{color:var(--ink);border-color:var(--s0)}
nav button{margin:1.2rem 0 0 .8rem}
main{min-width:0;padding:2.2rem 0 5rem}
header{margin-bottom:2rem}
h1{font-size:2rem;line-height:1.2;letter-spacing:-.015em;font-weight:680;margin:0 0 .3rem}
.sub{color:var(--soft);margin:0}
section{border-top:1px solid var(--rule);padding-top:1.7rem;margin-top:2.6rem}
h2{font-size:1.35rem;line-height:1.3;letter-spacing:-.01em;font-weight:660;margin:0 0 .8rem}
h3{font-size:1.02rem;font-weight:640;margin:2.1rem 0 .5rem}
p{margin:.6rem 0;max-width:46rem}
.lead{font-size:1.125rem;line-height:1.6;max-width:46rem}
ul{max-width:46rem;padding-left:1.2rem}
li{margin:.25rem 0}
dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.3rem 1.4rem;margin:.9rem 0}
dt{color:var(--soft)}
dd{margin:0;overflow-wrap:anywhere}
figure{margin:1.4rem 0}
figcaption{font-size:.9rem;line-height:1.45;color:var(--soft);max-width:46rem;margin-bottom:.5rem}
figure.plot-figure figcaption{margin:.4rem 0 0}
svg.plot{width:100%;height:auto;display:block}
.on-narrow{display:none}
.gallery{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,28rem),1fr));gap:1.2rem 2rem;align-items:start}
.gallery figure{margin:.6rem 0;min-width:0}
.scroll{overflow-x:auto;background:linear-gradient(to right,var(--paper) 30%,transparent) left/2.5rem 100% no-repeat local,linear-gradient(to left,var(--paper) 30%,transparent) right/2.5rem 100% no-repeat local,linear-gradient(to right,var(--rule),transparent) left/.8rem 100% no-repeat scroll,linear-gradient(to left,var(--rule),transparent) right/.8rem 100% no-repeat scroll}
.scroll.long{max-height:34rem;overflow-y:auto}
table.data{border-collapse:collapse;font-size:.875rem;line-height:1.35;font-variant-numeric:tabular-nums;border-top:1.5px solid var(--ink);border-bottom:1.5px solid var(--ink)}
table.data th,table.data td{padding:.34rem .62rem;text-align:left;font-weight:400;white-space:nowrap;max-width:22rem;overflow:hidden;text-overflow:ellipsis}
table.data.many th,table.data.many td{padding:.34rem .4rem}
table.data.many small{display:block;margin:0}
table.data.prose td,table.data thead th{white-space:normal}
table.data.prose td{max-width:34rem}
table.data thead th{font-weight:620;border-bottom:1px solid var(--ink);vertical-align:bottom;background:var(--paper)}
.long thead th{position:sticky;top:0}
table.data .n{text-align:right}
table.data tr.rule>*{border-top:1px solid var(--rule)}
table.data tbody tr:hover>*{background:var(--faint)}
table.data .best{font-weight:680}
table.data .second{text-decoration:underline}
table.data .theirs{font-style:italic;color:var(--soft)}
table.data small{font-size:.75rem;color:var(--soft);margin-left:.3rem;font-weight:400}
.note{font-size:.85rem;line-height:1.5;color:var(--soft)}
th[data-sort]{cursor:pointer}
th[data-sort]::after{content:"\2195";color:var(--soft);opacity:.45;margin-left:.3rem;font-weight:400}
th[aria-sort=ascending]::after{content:"\2191";opacity:1}
th[aria-sort=descending]::after{content:"\2193";opacity:1}
.filter{display:inline-block;font-size:.875rem;color:var(--soft);margin-bottom:.5rem}
input,button{font:inherit;font-size:.875rem;color:var(--ink);background:var(--paper);border:1px solid var(--rule);border-radius:.35rem;padding:.2rem .6rem}
input:focus-visible,button:focus-visible,a:focus-visible,summary:focus-visible,th:focus-visible{outline:2px solid var(--s0);outline-offset:1px}
button{cursor:pointer}
pre{background:var(--faint);border-radius:.4rem;padding:.7rem .9rem;white-space:pre-wrap;overflow-wrap:anywhere;font:.83rem/1.5 ui-monospace,SFMono-Regular,Menlo,'DejaVu Sans Mono',monospace;margin:.6rem 0}
.command{position:relative}
.command span{white-space:nowrap}
.command button{position:absolute;top:.35rem;right:.4rem;opacity:.85}
.js .command pre{padding-right:4.6rem}
details{margin:1rem 0}
summary{cursor:pointer;color:var(--soft)}
footer{color:var(--soft);font-size:.85rem;margin-top:3rem;border-top:1px solid var(--rule);padding-top:1rem}
#tip{position:fixed;z-index:9;pointer-events:none;background:var(--ink);color:var(--paper);font-size:.8rem;line-height:1.35;padding:.3rem .55rem;border-radius:.3rem;white-space:pre-wrap;max-width:min(24rem,90vw)}
.hovering [data-series]:not(.lit){opacity:.18}
[data-series]{transition:opacity .12s}
@media (max-width:62rem){.frame{display:block;padding:0 1.1rem}nav{position:static;padding:1.2rem 0 0;max-height:none}nav ol{columns:2}main{padding-top:1.2rem}}
@media (max-width:46rem){.on-wide{display:none}.on-narrow{display:block}.frame{padding:0 1.1rem}h1{font-size:1.6rem;overflow-wrap:anywhere}h2,h3,p,li,figcaption,summary{overflow-wrap:anywhere}dl{grid-template-columns:minmax(0,1fr);gap:0}dd{margin-bottom:.5rem}nav ol{columns:2}table.data{font-size:.8rem}table.data th,table.data td{padding:.3rem .28rem;white-space:normal;overflow-wrap:anywhere}table.data td.n{min-width:2.4rem;overflow-wrap:normal}table.data thead th{overflow-wrap:normal}table.data th[scope=row]{min-width:5rem;max-width:9rem}table.data small{display:block;margin:0}th[data-sort]::after{content:""}}
@media (prefers-reduced-motion:reduce){[data-series]{transition:none}}
@media print{body{font-size:10pt}.frame{display:block;max-width:none;padding:0}nav,.filter,button{display:none!important}section{break-inside:auto}figure,tr{break-inside:avoid}h2,h3,figcaption{break-after:avoid}.scroll,.scroll.long{overflow:visible;max-height:none}}
)css";

// Sorting, filtering, hovering and the colour switch; nothing that reading needs.
constexpr std::string_view kScript = R"js(
(function(){
'use strict';
var root=document.documentElement;
root.classList.add('js');
var wish=new URLSearchParams(location.search).get('theme');
if(wish==='dark'||wish==='light')root.setAttribute('data-theme',wish);
var nav=document.querySelector('nav');
if(nav){
  var button=document.createElement('button');
  button.type='button';button.textContent='light / dark';
  button.addEventListener('click',function(){
    var now=root.getAttribute('data-theme')||(matchMedia('(prefers-color-scheme:dark)').matches?'dark':'light');
    root.setAttribute('data-theme',now==='dark'?'light':'dark');
  });
  nav.appendChild(button);
}
function key(cell){
  if(!cell)return {n:NaN,t:''};
  var v=cell.getAttribute('data-v');
  return {n:v===null?NaN:parseFloat(v),t:cell.textContent};
}
document.querySelectorAll('table.data').forEach(function(table){
  var heads=table.tHead.rows[0].cells,body=table.tBodies[0];
  Array.prototype.forEach.call(heads,function(head,column){
    head.setAttribute('data-sort','');head.tabIndex=0;head.title='sort by this column';
    function sort(){
      var up=head.getAttribute('aria-sort')==='descending'||(head.getAttribute('aria-sort')===null&&!head.classList.contains('n'));
      Array.prototype.forEach.call(heads,function(h){h.removeAttribute('aria-sort');});
      head.setAttribute('aria-sort',up?'ascending':'descending');
      var rows=Array.prototype.map.call(body.rows,function(row,i){return {row:row,k:key(row.cells[column]),i:i};});
      rows.sort(function(a,b){
        var an=isNaN(a.k.n),bn=isNaN(b.k.n),d;
        if(an!==bn)return an?1:-1;
        d=an?a.k.t.localeCompare(b.k.t):a.k.n-b.k.n;
        return (up?d:-d)||a.i-b.i;
      });
      rows.forEach(function(r){r.row.classList.remove('rule');body.appendChild(r.row);});
    }
    head.addEventListener('click',sort);
    head.addEventListener('keydown',function(e){if(e.key==='Enter'||e.key===' '){e.preventDefault();sort();}});
  });
  var label=table.closest('figure').querySelector('.filter');
  if(label){
    label.hidden=false;
    label.querySelector('input').addEventListener('input',function(){
      var want=this.value.toLowerCase();
      Array.prototype.forEach.call(body.rows,function(row){row.hidden=row.textContent.toLowerCase().indexOf(want)<0;});
    });
  }
});
document.querySelectorAll('.command').forEach(function(box){
  var button=document.createElement('button'),text=box.querySelector('pre').textContent;
  button.type='button';button.textContent='copy';
  function done(well){button.textContent=well?'copied':'select it';setTimeout(function(){button.textContent='copy';},1500);}
  function old(){
    var range=document.createRange();range.selectNodeContents(box.querySelector('pre'));
    getSelection().removeAllRanges();getSelection().addRange(range);
    try{return document.execCommand('copy');}catch(e){return false;}
  }
  button.addEventListener('click',function(){
    if(navigator.clipboard&&navigator.clipboard.writeText)
      navigator.clipboard.writeText(text).then(function(){done(true);},function(){done(old());});
    else done(old());
  });
  box.appendChild(button);
});
var tip=document.createElement('div');
tip.id='tip';tip.hidden=true;document.body.appendChild(tip);
document.querySelectorAll('svg.plot').forEach(function(svg){
  svg.querySelectorAll('title').forEach(function(t){t.parentNode.setAttribute('data-tip',t.textContent);t.remove();});
  function leave(){tip.hidden=true;svg.classList.remove('hovering');svg.querySelectorAll('.lit').forEach(function(g){g.classList.remove('lit');});}
  svg.addEventListener('mouseover',function(e){
    leave();
    var marked=e.target.closest('[data-tip]'),group=e.target.closest('[data-series]');
    if(group){
      var name=group.getAttribute('data-series');
      svg.classList.add('hovering');
      svg.querySelectorAll('[data-series]').forEach(function(g){if(g.getAttribute('data-series')===name)g.classList.add('lit');});
    }
    if(marked){tip.textContent=marked.getAttribute('data-tip');tip.hidden=false;}
  });
  svg.addEventListener('mousemove',function(e){
    if(tip.hidden)return;
    var w=tip.offsetWidth,x=e.clientX+14;
    tip.style.left=(x+w>innerWidth?Math.max(0,e.clientX-w-10):x)+'px';
    tip.style.top=Math.max(0,e.clientY-tip.offsetHeight-10)+'px';
  });
  svg.addEventListener('mouseleave',leave);
});
addEventListener('beforeprint',function(){document.querySelectorAll('details').forEach(function(d){d.open=true;});});
})();
)js";

std::string base64_of_hex(const std::string& hex) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bits, out;
  for (char c : hex) {
    const int value = c <= '9' ? c - '0' : c - 'a' + 10;
    for (int b = 3; b >= 0; --b) bits += (value >> b & 1) != 0 ? '1' : '0';
  }
  while (bits.size() % 6 != 0) bits += '0';
  for (std::size_t i = 0; i < bits.size(); i += 6) out += kDigits[std::stoul(bits.substr(i, 6), nullptr, 2)];
  while (out.size() % 4 != 0) out += '=';
  return out;
}

}  // namespace

void Page::section(const std::string& heading) {
  if (!headings_.empty()) body_ += "</section>\n";
  headings_.push_back(heading);
  body_ += fmt::format("<section id=\"part{}\"><h2>{}</h2>\n", headings_.size(), escape_xml(heading));
}
void Page::heading(std::string_view text) {
  body_ += "<h3><bdi>" + escape_xml(text) + "</bdi></h3>\n";
}
void Page::paragraph(std::string_view text) {
  body_ += "<p>" + escape_xml(text) + "</p>\n";
}
void Page::lead(std::string_view text) {
  body_ += "<p class=\"lead\">" + escape_xml(text) + "</p>\n";
}
void Page::list(const std::vector<std::string>& items) {
  body_ += "<ul>";
  for (const auto& item : items) body_ += "<li>" + escape_xml(item) + "</li>";
  body_ += "</ul>\n";
}
void Page::definitions(const std::vector<std::pair<std::string, std::string>>& items) {
  body_ += "<dl>";
  for (const auto& [term, text] : items)
    body_ += "<dt>" + escape_xml(term) + "</dt><dd><bdi>" + escape_xml(text) + "</bdi></dd>";
  body_ += "</dl>\n";
}
void Page::code(std::string_view text) {
  body_ += "<div class=\"command\"><pre tabindex=\"0\">";
  bool first = true;
  for (const auto word : split(text, ' ')) {
    std::string shown = escape_xml(word);
    for (auto at = shown.find("&#10;"); at != std::string::npos; at = shown.find("&#10;", at))
      shown.replace(at, 5, "\n");
    // Browsers break lines at hyphens, and "--" at the end of one is no flag.
    if (word.starts_with("-") && word.size() < 30) shown = "<span>" + shown + "</span>";
    body_ += (first ? "" : " ") + shown;
    first = false;
  }
  body_ += "</pre></div>\n";
}
void Page::figure(const Svg& wide, const Svg& narrow, std::string_view caption) {
  body_ += "<figure class=\"plot-figure\"><div class=\"on-wide\">" + wide.inline_text() +
           "</div><div class=\"on-narrow\">" + narrow.inline_text() + "</div><figcaption><bdi>" +
           escape_xml(caption) + "</bdi></figcaption></figure>\n";
}
void Page::begin_gallery() {
  body_ += "<div class=\"gallery\">";
}
void Page::end_gallery() {
  body_ += "</div>\n";
}
void Page::table(const ResultTable& table) {
  body_ += table.html();
}
void Page::begin_details(std::string_view summary) {
  body_ += "<details><summary>" + escape_xml(summary) + "</summary>\n";
}
void Page::end_details() {
  body_ += "</details>\n";
}

std::string Page::text() const {
  Sha256 hash;
  hash.add(kScript);
  std::string navigation;
  for (std::size_t i = 0; i < headings_.size(); ++i)
    navigation += fmt::format("<li><a href=\"#part{}\">{}</a></li>", i + 1, escape_xml(headings_[i]));
  std::string out = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">";
  out += fmt::format(
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src 'sha256-{}'\">",
      base64_of_hex(hash.hex()));
  out +=
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><meta name=\"color-scheme\" "
      "content=\"light dark\">";
  out += "<title>" + escape_xml(title_) + "</title><style>" + page_colours() + plot_style();
  out += kStyle;
  out += "</style></head><body><div class=\"frame\"><nav aria-label=\"contents\"><ol>" + navigation +
         "</ol></nav><main><header><h1><bdi>" + escape_xml(title_) + "</bdi></h1><p class=\"sub\">" +
         escape_xml(subtitle_) + "</p></header>\n" + body_ + (headings_.empty() ? "" : "</section>\n") +
         "</main></div><script>";
  out += kScript;
  return out + "</script></body></html>\n";
}

}  // namespace lacuna
