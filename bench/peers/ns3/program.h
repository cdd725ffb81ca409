// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Common parts of the two programs: options, clocks, and the size of a packet on a link.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <string>
#include <utility>

#include "ns3/core-module.h"

/// Bytes that Ethernet adds to an IP packet on the wire: preamble 8, header 14, checksum 4, gap between frames 12.
constexpr uint32_t FRAMING_BYTES = 8 + 14 + 4 + 12;
/// Bytes of them that ns-3's point-to-point devices send themselves, as the header of PPP.
constexpr uint32_t PPP_BYTES = 2;
/// Longest IP packet.
constexpr uint32_t MTU = 1500;

[[noreturn]] inline void
Fail(const std::string& why)
{
    std::fprintf(stderr, "error: %s\n", why.c_str());
    std::exit(1);
}

/// Options of the form `--name value`, each with a default. Unknown options are rejected.
class Options
{
  public:
    Options(int count, char** words, std::map<std::string, std::string> defaults)
        : m_values(std::move(defaults))
    {
        for (int i = 1; i < count; i += 2)
        {
            const std::string word = words[i];
            const auto option = word.rfind("--", 0) == 0 ? m_values.find(word.substr(2)) : m_values.end();
            if (option == m_values.end())
            {
                std::string known;
                for (const auto& [name, value] : m_values)
                {
                    known += " --" + name + " " + value;
                }
                Fail("no option " + word + "; with their defaults:" + known);
            }
            if (i + 1 == count)
            {
                Fail(word + " needs a value");
            }
            option->second = words[i + 1];
        }
    }

    const std::string& Text(const std::string& name) const
    {
        return m_values.at(name);
    }

    /// A number that is not negative.
    double Number(const std::string& name) const
    {
        const std::string& text = Text(name);
        char* end = nullptr;
        errno = 0;
        const double number = std::strtod(text.c_str(), &end);
        if (text.empty() || *end != '\0' || errno != 0 || !(number >= 0.0 && number < 1e9))
        {
            Fail("--" + name + " " + text + ": expected a number from 0 to 1e9");
        }
        return number;
    }

  private:
    std::map<std::string, std::string> m_values;
};

/// Seconds on one of the system's clocks.
inline double
SecondsOn(clockid_t clock)
{
    timespec now;
    clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

/// Comes before anything else of the simulator. Nanoseconds are too coarse for a byte at 10 Gbit/s; of the schedulers,
/// which all give the same order of events, this one took 13 % less time than the default on the star.
inline void
SetUp()
{
    ns3::Time::SetResolution(ns3::Time::PS);
    ns3::Simulator::SetScheduler(ns3::ObjectFactory("ns3::PriorityQueueScheduler"));
}

/// Run time of the simulator.
struct Spent
{
    double wall_s;
    double cpu_s;
};

/// Runs until `seconds` of emulated time have passed.
inline Spent
RunFor(double seconds)
{
    ns3::Simulator::Stop(ns3::Seconds(seconds));
    const double wall = SecondsOn(CLOCK_MONOTONIC);
    const double cpu = SecondsOn(CLOCK_PROCESS_CPUTIME_ID);
    ns3::Simulator::Run();
    return {SecondsOn(CLOCK_MONOTONIC) - wall, SecondsOn(CLOCK_PROCESS_CPUTIME_ID) - cpu};
}
