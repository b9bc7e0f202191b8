#include "common/model/testing/tiny_tokenizer.h"

#include <set>
#include <string>
#include <vector>

#include "common/base/utf8.h"

namespace pagoda::model::testing {
namespace {

// Token types of GGUF.
constexpr int32_t kNormal = 1;
constexpr int32_t kControl = 3;
constexpr int32_t kUnused = 5;

bool IsPrintable(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

// GPT-2's alphabet: printable bytes stand for themselves, the others for U+0100 and up, in order.
std::vector<std::string> ByteAlphabet() {
  std::vector<std::string> alphabet;
  uint32_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    AppendUtf8(alphabet.emplace_back(), IsPrintable(byte) ? byte : next++);
  }
  return alphabet;
}

struct Pair {
  std::string left, right;
};

// Common English pieces first, then every pair of lower-case letters. "\u0120" is the space.
std::vector<Pair> Merges() {
  const std::string space = "\u0120";
  std::vector<Pair> merges = {{space, "t"}, {"h", "e"},          {space, "a"},        {"i", "n"},
                              {"r", "e"},   {"o", "n"},          {space + "t", "he"}, {"e", "r"},
                              {space, "s"}, {"a", "t"},          {space, "w"},        {space, "o"},
                              {"e", "n"},   {space, "c"},        {"i", "t"},          {"i", "s"},
                              {"a", "n"},   {"o", "r"},          {"e", "s"},          {space, "b"},
                              {"e", "d"},   {space, "f"},        {"in", "g"},         {space, "p"},
                              {"o", "u"},   {space + "a", "n"},  {"a", "l"},          {"a", "r"},
                              {space, "m"}, {space + "o", "f"},  {space, "in"},       {space, "d"},
                              {space, "h"}, {space + "an", "d"}, {"i", "c"},          {"l", "e"},
                              {"o", "m"},   {"i", "on"},         {space + "t", "o"}};
  for (char first = 'a'; first <= 'z'; ++first) {
    for (char second = 'a'; second <= 'z'; ++second) {
      merges.push_back({std::string(1, first), std::string(1, second)});
    }
  }
  return merges;
}

constexpr char kChatTemplate[] =
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

}  // namespace

void AddTinyTokenizer(GgufWriter& writer, int32_t vocabulary) {
  const auto size = static_cast<size_t>(vocabulary);
  std::vector<std::string> tokens = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
  std::vector<int32_t> types(tokens.size(), kControl);
  for (const std::string& byte : ByteAlphabet()) tokens.push_back(byte);
  std::vector<std::string> merges;
  std::set<std::string> known(tokens.begin(), tokens.end());
  for (const Pair& pair : Merges()) {
    if (tokens.size() == size) break;
    if (!known.insert(pair.left + pair.right).second) continue;
    tokens.push_back(pair.left + pair.right);
    merges.push_back(pair.left + " " + pair.right);
  }
  types.resize(tokens.size(), kNormal);
  while (tokens.size() < size) {
    tokens.push_back("<|unused_" + std::to_string(tokens.size()) + "|>");
    types.push_back(kUnused);
  }

  writer.AddString("tokenizer.ggml.model", "gpt2");
  writer.AddString("tokenizer.ggml.pre", "smollm");
  writer.AddStrings("tokenizer.ggml.tokens", tokens);
  writer.AddInts("tokenizer.ggml.token_type", types);
  writer.AddStrings("tokenizer.ggml.merges", merges);
  writer.AddUint("tokenizer.ggml.bos_token_id", 1);
  writer.AddUint("tokenizer.ggml.eos_token_id", 2);
  writer.AddUint("tokenizer.ggml.unknown_token_id", 0);
  writer.AddUint("tokenizer.ggml.padding_token_id", 2);
  writer.AddBool("tokenizer.ggml.add_space_prefix", false);
  writer.AddBool("tokenizer.ggml.add_bos_token", false);
  writer.AddString("tokenizer.chat_template", kChatTemplate);
}

}  // namespace pagoda::model::testing
