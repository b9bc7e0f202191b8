// The committed bytes: one line "MESSAGE HEX" or "ENUM NUMBER=NAME ..." an instance, and every
// message and enumeration of proto/pagoda/v1.
//
// Lines are only ever added: a message that got fields gets one more.
//
// Concurrency: plain functions.
#ifndef PAGODA_TESTS_WIRE_GOLDEN_FILE_H_
#define PAGODA_TESTS_WIRE_GOLDEN_FILE_H_

#include <google/protobuf/descriptor.h>

#include <string>
#include <vector>

#include "common/base/status.h"

namespace pagoda::wire {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;

struct GoldenLine {
  std::string type;   // "pagoda.v1.Usage"
  std::string value;  // hex, or the text of an enumeration
};

// Comments (#) and empty lines apart.
StatusOr<std::vector<GoldenLine>> ReadGoldenFile(const std::string& path);

// What today's definitions say and `lines` do not, as further lines.
std::vector<GoldenLine> MissingLines(const std::vector<GoldenLine>& lines);

Status AppendLines(const std::string& path, const std::vector<GoldenLine>& lines);

// The files of proto/pagoda/v1, e.g. "pagoda/v1/types.proto".
std::vector<const google::protobuf::FileDescriptor*> WireFiles();

// Everything that they define, also inside messages; map entries are no messages of their own.
std::vector<const Descriptor*> WireMessages();
std::vector<const EnumDescriptor*> WireEnums();

}  // namespace pagoda::wire

#endif  // PAGODA_TESTS_WIRE_GOLDEN_FILE_H_
