// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// crosscheck: small scenarios of TCP through one bottleneck, for comparison with other simulators. Prints one line of
// JSON: goodput of each flow, length of the bottleneck's queue every millisecond, drops, marks, retransmissions and
// timeouts, all after a warm-up.
//
//   senders --- switch ===[queue disc]=== receiver
//
// Each link has a quarter of --rtt-us as propagation delay: a segment and its acknowledgement cross four. An MTU takes
// 1538 bytes on a link and carries 1448 bytes of payload, as with Ethernet's framing and TCP's timestamps. Timestamps are disabled, because ns-3 has them in milliseconds and would derive round-trip times from them; a gap between frames replaces them and the rest of Ethernet's framing.
// Senders have infinite data and start at random within the first millisecond. Of the packets queued at the bottleneck
// the device holds one, the queue disc all others; the packet in transmission does not count.

#include <algorithm>
#include <numeric>
#include <vector>

#include "program.h"

#include "ns3/applications-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

namespace
{

/// Bytes of TCP's timestamps with padding.
constexpr uint32_t TIMESTAMPS_BYTES = 12;
/// Payload of a full-size segment, without the headers of IPv4 and TCP with timestamps.
constexpr uint32_t MSS = MTU - 20 - 20 - TIMESTAMPS_BYTES;

/// Settings of a scenario.
struct Scenario
{
    const char* name;
    uint16_t senders;
    /// Of senders' links. If it is the bottleneck's, a flow that is alone for a moment holds the queue where it is and
    /// grows in its own host: what another sends after a timeout then finds the queue full, for seconds on end.
    double edge_bps;
    double bottleneck_bps;
    double round_trip_us;
    /// Limit of the queue disc in full-size packets.
    uint32_t buffer;
    const char* disc;
    const char* congestion_control;
    bool ecn;
};

constexpr double GBPS = 1e9;
const char* const DROP_TAIL = "ns3::FifoQueueDisc";
const char* const RED = "ns3::RedQueueDisc";
const char* const THRESHOLD = "threshold";
const char* const CUBIC = "ns3::TcpCubic";
/// Counts bytes in congestion avoidance (RFC 3465); ns3::TcpNewReno counts acknowledgements, of which there is one for
/// two segments.
const char* const RENO = "ns3::TcpLinuxReno";
const char* const DCTCP = "ns3::TcpDctcp";

const Scenario SCENARIOS[] = {
    {"droptail-cubic", 5, 10 * GBPS, 10 * GBPS, 40, 1024, DROP_TAIL, CUBIC, false},
    {"droptail-reno", 5, 10 * GBPS, 10 * GBPS, 40, 1024, DROP_TAIL, RENO, false},
    {"red-cubic", 5, 10 * GBPS, 10 * GBPS, 40, 1024, RED, CUBIC, false},
    {"red-reno", 5, 10 * GBPS, 10 * GBPS, 40, 1024, RED, RENO, false},
    {"red-ecn-cubic", 5, 10 * GBPS, 10 * GBPS, 40, 1024, RED, CUBIC, true},
    {"red-ecn-reno", 5, 10 * GBPS, 10 * GBPS, 40, 1024, RED, RENO, true},
    {"dctcp", 5, 10 * GBPS, 10 * GBPS, 40, 1024, THRESHOLD, DCTCP, true},
    {"fairness-cubic", 2, 10 * GBPS, 1 * GBPS, 100, 100, DROP_TAIL, CUBIC, false},
    {"fairness-reno", 2, 10 * GBPS, 1 * GBPS, 100, 100, DROP_TAIL, RENO, false},
};

const Scenario&
Find(const std::string& name)
{
    std::string known;
    for (const auto& scenario : SCENARIOS)
    {
        if (name == scenario.name)
        {
            return scenario;
        }
        known += std::string(" ") + scenario.name;
    }
    Fail("--scenario " + name + ": expected one of" + known);
}

/// The queue disc of a scenario. RED is Floyd and Jacobson's (1993), with the settings of Flexplane's section 5.1.
TrafficControlHelper
QueueDiscOf(const Scenario& scenario)
{
    const QueueSizeValue buffer(QueueSize(QueueSizeUnit::PACKETS, scenario.buffer));
    TrafficControlHelper helper;
    if (scenario.disc == DROP_TAIL)
    {
        helper.SetRootQueueDisc(DROP_TAIL, "MaxSize", buffer);
        return helper;
    }
    const bool averages = scenario.disc == RED;
    // clang-format off
    helper.SetRootQueueDisc(RED,
        "MaxSize", buffer,
        "MinTh", DoubleValue(averages ? 150 : 65),
        "MaxTh", DoubleValue(averages ? 300 : 65),
        "LInterm", DoubleValue(10),                       // one over the largest probability, 0.1
        "QW", DoubleValue(averages ? 1.0 / 32 : 1.0),     // 2^-weight
        "Gentle", BooleanValue(false),
        "Wait", BooleanValue(false),                      // p / (1 - count p), not p / (2 - count p) after a pause
        "MeanPktSize", UintegerValue(MTU),
        "LinkBandwidth", DataRateValue(DataRate(static_cast<uint64_t>(scenario.bottleneck_bps))),
        "UseEcn", BooleanValue(scenario.ecn),
        "UseHardDrop", BooleanValue(averages));           // at the upper threshold: dropped by RED, marked for DCTCP
    // clang-format on
    return helper;
}

void
SetTcp(const Scenario& scenario, double min_rto_ms)
{
    constexpr uint32_t BUFFER_BYTES = 6 << 20;
    const auto set = [](const std::string& attribute, const AttributeValue& value) {
        Config::SetDefault("ns3::Tcp" + attribute, value);
    };
    set("L4Protocol::SocketType", StringValue(scenario.congestion_control));
    set("Socket::SegmentSize", UintegerValue(MSS));
    set("Socket::InitialCwnd", UintegerValue(10));
    set("Socket::SndBufSize", UintegerValue(BUFFER_BYTES));
    set("Socket::RcvBufSize", UintegerValue(BUFFER_BYTES));
    set("Socket::DelAckCount", UintegerValue(2));
    set("Socket::DelAckTimeout", TimeValue(MilliSeconds(40)));
    set("SocketBase::Sack", BooleanValue(true));
    set("SocketBase::Timestamp", BooleanValue(false));
    set("SocketBase::UseEcn", StringValue(scenario.ecn ? "On" : "Off"));
    set("SocketBase::MinRto", TimeValue(Seconds(min_rto_ms / 1e3)));
    set("SocketBase::ClockGranularity", TimeValue(MicroSeconds(1)));
}

/// Links of one rate, with a quarter of the round trip as delay.
PointToPointHelper
LinkOf(double bps, double round_trip_us, const char* device_queue)
{
    const uint32_t gap_bytes = FRAMING_BYTES + TIMESTAMPS_BYTES - PPP_BYTES;
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(static_cast<uint64_t>(bps))));
    link.SetDeviceAttribute("InterframeGap", TimeValue(Seconds(gap_bytes * 8 / bps)));
    link.SetChannelAttribute("Delay", TimeValue(Seconds(round_trip_us / 4e6)));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(device_queue));
    return link;
}

/// Observes the segments of a sender.
class Sender
{
  public:
    void Watch(Ptr<Application> application)
    {
        const auto socket = DynamicCast<BulkSendApplication>(application)->GetSocket();
        socket->TraceConnectWithoutContext("Tx", MakeCallback(&Sender::Sent, this));
        socket->TraceConnectWithoutContext("CongState", MakeCallback(&Sender::Changed, this));
    }

    /// Retransmitted segments.
    uint64_t retransmissions = 0;
    uint64_t timeouts = 0;

  private:
    void Sent(Ptr<const Packet> packet, const TcpHeader& header, Ptr<const TcpSocketBase>)
    {
        const SequenceNumber32 end = header.GetSequenceNumber() + packet->GetSize();
        if (packet->GetSize() > 0 && end <= m_highest)
        {
            retransmissions++;
        }
        m_highest = std::max(m_highest, end);
    }

    void Changed(TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t now)
    {
        timeouts += now == TcpSocketState::CA_LOSS;
    }

    SequenceNumber32 m_highest{0};
};

/// The network, its flows and counters.
class Dumbbell
{
  public:
    Dumbbell(const Scenario& scenario, double round_trip_us)
        : m_senders(scenario.senders)
    {
        NodeContainer hosts(scenario.senders + 1);
        NodeContainer router(1);
        InternetStackHelper stack;
        stack.SetIpv6StackInstall(false);
        stack.Install(NodeContainer(hosts, router));

        Ipv4AddressHelper networks("10.0.0.0", "255.255.255.252");
        // A device tells no queue disc to wait, and gets none. Its own queue never overflows.
        PointToPointHelper edge = LinkOf(scenario.edge_bps, round_trip_us, "1000000p");
        edge.DisableFlowControl();
        for (uint16_t i = 0; i < scenario.senders; i++)
        {
            networks.Assign(edge.Install(hosts.Get(i), router.Get(0)));
            networks.NewNetwork();
        }
        PointToPointHelper bottleneck = LinkOf(scenario.bottleneck_bps, round_trip_us, "1p");
        const NetDeviceContainer ends = bottleneck.Install(router.Get(0), hosts.Get(scenario.senders));
        m_device = DynamicCast<PointToPointNetDevice>(ends.Get(0));
        m_disc = QueueDiscOf(scenario).Install(ends.Get(0)).Get(0);
        m_receiver = networks.Assign(ends).GetAddress(1);
        Ipv4GlobalRoutingHelper::PopulateRoutingTables();
        StartFlows(hosts);
    }

    void MeasureFrom(double seconds)
    {
        Simulator::Schedule(Seconds(seconds), &Dumbbell::Begin, this);
    }

    void Print() const;

  private:
    /// Counters at the end of the warm-up.
    struct Counts
    {
        uint64_t drops = 0;
        uint64_t marks = 0;
        uint64_t retransmissions = 0;
        uint64_t timeouts = 0;
        std::vector<uint64_t> received;
    };

    void StartFlows(const NodeContainer& hosts)
    {
        const uint16_t first_port = 5000;
        auto random = CreateObject<UniformRandomVariable>();
        for (uint16_t i = 0; i < m_senders.size(); i++)
        {
            const InetSocketAddress receiver(m_receiver, first_port + i);
            PacketSinkHelper sink("ns3::TcpSocketFactory", receiver);
            m_sinks.Add(sink.Install(hosts.Get(m_senders.size())));
            BulkSendHelper source("ns3::TcpSocketFactory", receiver);
            source.SetAttribute("SendSize", UintegerValue(64 * MSS));
            auto application = source.Install(hosts.Get(i)).Get(0);
            const Time start = MicroSeconds(random->GetInteger(0, 1000));
            application->SetStartTime(start);
            Simulator::Schedule(start + NanoSeconds(1), &Sender::Watch, &m_senders[i], application);
        }
    }

    Counts Now() const
    {
        const QueueDisc::Stats& stats = m_disc->GetStats();
        Counts counts;
        counts.drops = stats.nTotalDroppedPackets;
        counts.marks = stats.nTotalMarkedPackets;
        for (const auto& sender : m_senders)
        {
            counts.retransmissions += sender.retransmissions;
            counts.timeouts += sender.timeouts;
        }
        for (uint32_t i = 0; i < m_sinks.GetN(); i++)
        {
            counts.received.push_back(DynamicCast<PacketSink>(m_sinks.Get(i))->GetTotalRx());
        }
        return counts;
    }

    void Begin()
    {
        m_began = Simulator::Now();
        m_before = Now();
        Sample();
    }

    void Sample()
    {
        m_samples.push_back(m_disc->GetNPackets() + m_device->GetQueue()->GetNPackets());
        Simulator::Schedule(MilliSeconds(1), &Dumbbell::Sample, this);
    }

    std::vector<Sender> m_senders;
    ApplicationContainer m_sinks;
    Ipv4Address m_receiver;
    Ptr<PointToPointNetDevice> m_device;
    Ptr<QueueDisc> m_disc;
    Time m_began;
    Counts m_before;
    std::vector<uint32_t> m_samples;
};

/// Returns a percentile by nearest rank.
uint32_t
NearestRank(const std::vector<uint32_t>& sorted, uint32_t percent)
{
    const size_t rank = (sorted.size() * percent + 99) / 100;
    return sorted[std::max<size_t>(rank, 1) - 1];
}

void
Dumbbell::Print() const
{
    const Counts counts = Now();
    const double seconds = (Simulator::Now() - m_began).GetSeconds();
    std::printf("\"goodput_bps\": [");
    for (size_t i = 0; i < counts.received.size(); i++)
    {
        std::printf("%s%.0f", i == 0 ? "" : ", ", (counts.received[i] - m_before.received[i]) * 8 / seconds);
    }
    auto sorted = m_samples;
    std::sort(sorted.begin(), sorted.end());
    const double mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / sorted.size();
    std::printf("], \"queue\": {\"samples\": %zu, \"mean\": %.2f", sorted.size(), mean);
    for (const auto& [name, percent] : {std::pair("p5", 5), {"median", 50}, {"p95", 95}, {"p99", 99}, {"max", 100}})
    {
        std::printf(", \"%s\": %u", name, NearestRank(sorted, percent));
    }
    std::printf("}");
    const auto print = [](const char* name, uint64_t now, uint64_t before) {
        std::printf(", \"%s\": %llu", name, static_cast<unsigned long long>(now - before));
    };
    print("drops", counts.drops, m_before.drops);
    print("marks", counts.marks, m_before.marks);
    print("retransmissions", counts.retransmissions, m_before.retransmissions);
    print("timeouts", counts.timeouts, m_before.timeouts);
}

} // namespace

int
main(int argc, char** argv)
{
    const Options options(argc,
                          argv,
                          {{"scenario", SCENARIOS[0].name},
                           {"seconds", "1"},
                           {"warm-up", "0.2"},
                           {"seed", "1"},
                           {"rtt-us", "of the scenario"},
                           {"min-rto-ms", "200"}});
    const Scenario& scenario = Find(options.Text("scenario"));
    const double seconds = options.Number("seconds");
    const double warm_up = options.Number("warm-up");
    if (warm_up >= seconds)
    {
        Fail("--warm-up must be less than --seconds");
    }
    const bool has_own = options.Text("rtt-us") == "of the scenario";
    const double round_trip_us = has_own ? scenario.round_trip_us : options.Number("rtt-us");

    SetUp();
    RngSeedManager::SetRun(static_cast<uint64_t>(options.Number("seed")));
    SetTcp(scenario, options.Number("min-rto-ms"));
    Dumbbell dumbbell(scenario, round_trip_us);
    dumbbell.MeasureFrom(warm_up);

    const Spent spent = RunFor(seconds);
    std::printf("{\"scenario\": \"%s\", \"emulated_s\": %g, \"warm_up_s\": %g, \"rtt_us\": %g, ",
                scenario.name,
                seconds,
                warm_up,
                round_trip_us);
    dumbbell.Print();
    std::printf(", \"wall_s\": %.3f, \"cpu_s\": %.3f}\n", spent.wall_s, spent.cpu_s);
    Simulator::Destroy();
    return 0;
}
