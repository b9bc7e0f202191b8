// The commands of `pagoda`. Each reads its own flags and returns the exit status.
//
// Exit status: 0 done, 1 it did not work (the reason is on standard error), 2 wrong usage.
//
// Concurrency: main calls one of them once.
#ifndef PAGODA_SERVICES_CTL_COMMAND_H_
#define PAGODA_SERVICES_CTL_COMMAND_H_

namespace pagoda::ctl {

// argv[0] is the command's name.
int RunUp(int argc, const char* const* argv);
int RunChat(int argc, const char* const* argv);
int RunGenerate(int argc, const char* const* argv);
int RunWorkers(int argc, const char* const* argv);
int RunDrain(int argc, const char* const* argv);
int RunKv(int argc, const char* const* argv);
int RunHealth(int argc, const char* const* argv);

}  // namespace pagoda::ctl

#endif  // PAGODA_SERVICES_CTL_COMMAND_H_
