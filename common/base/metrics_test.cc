#include "common/base/metrics.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pagoda {
namespace {

using ::testing::HasSubstr;

TEST(MetricsTest, RendersWhatWasCounted) {
  Metrics metrics;
  metrics.Counter("requests_total", "requests", {{"op", "get"}}).Increment(2);
  metrics.Gauge("blocks", "blocks held").Set(7);
  metrics.Histogram("seconds", "time", {0.1, 1}).Observe(0.5);
  std::string text = metrics.Render();
  EXPECT_THAT(text, HasSubstr("pagoda:requests_total{op=\"get\"} 2"));
  EXPECT_THAT(text, HasSubstr("pagoda:blocks 7"));
  EXPECT_THAT(text, HasSubstr("pagoda:seconds_bucket{le=\"0.1\"} 0"));
  EXPECT_THAT(text, HasSubstr("pagoda:seconds_bucket{le=\"1\"} 1"));
}

TEST(MetricsTest, TheSameNameAndLabelsAreTheSameMetric) {
  Metrics metrics;
  EXPECT_EQ(&metrics.Counter("a", "", {{"x", "1"}}), &metrics.Counter("a", "", {{"x", "1"}}));
  EXPECT_NE(&metrics.Counter("a", "", {{"x", "1"}}), &metrics.Counter("a", "", {{"x", "2"}}));
}

TEST(MetricsTest, ProcessMetricsAreReadAtEachRender) {
  Metrics metrics;
  metrics.AddProcessMetrics("test", "1.2.3");
  std::string text = metrics.Render();
  EXPECT_THAT(text, HasSubstr("pagoda:build_info{service=\"test\",version=\"1.2.3\"} 1"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("pagoda:process_resident_memory_bytes 0\n")));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("pagoda:process_open_fds 0\n")));
}

}  // namespace
}  // namespace pagoda
