#include "tiers/docker/task/codex_hook.h"

#include <string_view>

#include "tiers/docker/task/adapter.h"

namespace belljar::tiers::docker::task {
namespace {

// Codex gives it a call as JSON (`tool_name`, `tool_input.command`) and takes an exit code of 2 for a refusal, of which
// it tells what is on standard error. No single quote may be in it: a shell gets it between two.
constexpr std::string_view kProgram = R"js(
const list = process.argv.slice(1);
const no = (why) => { process.stderr.write("refused by the phase: " + why); process.exit(2); };
process.on("uncaughtException", (error) => no(String(error)));
const quote = String.fromCharCode(39);
const words = (text) => {
  const all = [[]];
  let word = null;
  let target = false;
  const end = () => {
    if (word !== null && !target) all[all.length - 1].push(word);
    if (word !== null) target = false;
    word = null;
  };
  const next = () => {
    end();
    target = false;
    all.push([]);
  };
  for (let i = 0; i < text.length; ++i) {
    const c = text[i];
    if (c === quote || c === "\"") {
      word = word === null ? "" : word;
      for (++i; text[i] !== c; ++i) {
        if (i >= text.length) no("a quote without its end");
        if (c === "\"" && (text[i] === "`" || (text[i] === "$" && text[i + 1] === "("))) no("a command in a command");
        if (c === "\"" && text[i] === "\\") ++i;
        word += text[i];
      }
    } else if (c === "\\") {
      word = (word === null ? "" : word) + (text[++i] || "");
    } else if (c === "`" || c === "(" || c === ")" || (c === "<" && text[i + 1] === "<") ||
               (c === "$" && (text[i + 1] === quote || text[i + 1] === "\"")) || (c === "#" && word === null)) {
      no("a command that is put together, or has quotes or remarks of a shell of its own");
    } else if (c === ">" || c === "<") {
      if (word !== null && /^[0-9]$/.test(word)) word = null;
      end();
      while (text[i + 1] === ">" || text[i + 1] === "&" || text[i + 1] === "|") ++i;
      target = true;
    } else if (c === ";" || c === "|" || c === "&" || c === "\n") {
      next();
    } else if (c === " " || c === "\t") {
      end();
    } else {
      word = (word === null ? "" : word) + c;
    }
  }
  end();
  return all.filter((one) => one.length > 0);
};
const patch = /^apply_patch <<\x27([A-Z]+)\x27\n[^]*?\n\1\n*$/;
let text = "";
process.stdin.on("data", (part) => { text += part; }).on("end", () => {
  const call = JSON.parse(text);
  const command = call.tool_input.command;
  if (typeof command !== "string") no("no command is named");
  const writes = list.includes("apply_patch");
  if (call.tool_name === "apply_patch" && writes) return;
  if (call.tool_name !== "Bash") no("the tool " + call.tool_name);
  const found = patch.exec(command);
  if (found && writes && command.trimEnd().split("\n" + found[1]).length === 2) return;
  for (const one of words(command)) {
    if (!list.includes(one[0]) && !list.includes(one[0] + " " + one[1])) no(one[0] + " is not on its list");
  }
});
)js";

std::string toml_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

}  // namespace

std::string codex_hook_command(Phase phase) {
  std::string command = "node -e '";
  command += kProgram;
  command += "' --";
  for (const std::string_view one : commands_of(phase)) command.append(" '").append(one).append("'");
  if (may_write(phase)) command += " apply_patch";
  // Codex goes on when a hook fails in another way than by 2.
  return command + " || exit 2";
}

std::string codex_hook(Phase phase) {
  return "[{hooks=[{type=\"command\",command=" + toml_string(codex_hook_command(phase)) + "}]}]";
}

}  // namespace belljar::tiers::docker::task
