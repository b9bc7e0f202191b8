// The values that stand in the committed bytes of each message, and the check that they are still
// read and written.
//
// A field's value depends on the numbers of the fields that lead to it and on its type, so it stays
// what it is when other fields come. Two fields of one type never hold the same.
//
// Concurrency: plain functions.
#ifndef PAGODA_TESTS_WIRE_GOLDEN_INSTANCE_H_
#define PAGODA_TESTS_WIRE_GOLDEN_INSTANCE_H_

#include <google/protobuf/message.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace pagoda::wire {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::Message;

// Instances of the prototype's type in which every field is set: two entries of what is repeated,
// and for each further member of a oneof one more instance. Inside nested messages a oneof has its
// first member; the others are in the nested message's own instances.
std::vector<std::unique_ptr<Message>> GoldenInstances(const Message& prototype);

// The bytes, with the keys of maps in order.
std::string Encode(const Message& message);

// OK when today's code reads `bytes` as the golden values and writes these again as `bytes`. Fields
// that `bytes` does not hold came later and may be anything; fields that today's code does not know
// must be reserved. Otherwise INVALID_ARGUMENT says what differs.
Status CheckGolden(const Message& prototype, std::string_view bytes);

// "0=TIER_UNSPECIFIED 1=RAM 2=DISK"
std::string EnumText(const EnumDescriptor& descriptor);

// OK when each number of an EnumText still has its name, or is reserved.
Status CheckEnum(const EnumDescriptor& descriptor, std::string_view text);

}  // namespace pagoda::wire

#endif  // PAGODA_TESTS_WIRE_GOLDEN_INSTANCE_H_
