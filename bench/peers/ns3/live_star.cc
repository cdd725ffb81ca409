// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// live_star: a switch and N hosts in real time. Each host is a network namespace whose only interface is a TAP device of
// this program, so that unmodified applications send through the simulated network.
//
//   --device csma              CsmaNetDevice and BridgeNetDevice, half duplex, any protocol
//   --device point-to-point    PointToPointNetDevice and a switch of a few lines, full duplex, IPv4 to 10.0.0.1 to
//                              10.0.0.N only: the lowest cost of a packet in ns-3
// Every full-size packet takes 1538 bytes on a link. A line `ready` says that the hosts can send. The program ends after
// --seconds, or on SIGTERM, with one line of JSON. --samples names a CSV file with the queue to the last host and the lag
// behind real time, each millisecond.

#include <algorithm>
#include <csignal>
#include <memory>
#include <sstream>
#include <vector>

#include "live_tap.h"
#include "program.h"

#include "ns3/bridge-module.h"
#include "ns3/csma-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/realtime-simulator-impl.h"
#include "ns3/tap-bridge-module.h"

using namespace ns3;

namespace
{

/// Propagation delay of a link.
const char* const LINK_DELAY = "1us";
/// Queue of a switch port, and of a host, in packets. A host's holds what its TCP connections have on the way.
const char* const PORT_QUEUE = "1024p";
const char* const HOST_QUEUE = "16384p";
/// Bytes of Ethernet's framing that a CSMA device sends itself: header 14, checksum 4.
constexpr uint32_t CSMA_BYTES = 14 + 4;
/// The distance of two samples.
const Time INTERVAL = MilliSeconds(1);

volatile std::sig_atomic_t g_ends = 0;

void
End(int)
{
    g_ends = 1;
}

/// A device with its rate, gap and queue.
template <class Device>
Ptr<Device>
MakeDevice(Ptr<Node> node, double bps, uint32_t own_bytes, const char* packets)
{
    auto queue = CreateObject<DropTailQueue<Packet>>();
    queue->SetAttribute("MaxSize", StringValue(packets));
    auto device = CreateObject<Device>();
    device->SetAddress(Mac48Address::Allocate());
    device->SetInterframeGap(Seconds((FRAMING_BYTES - own_bytes) * 8 / bps));
    device->SetQueue(queue);
    node->AddDevice(device);
    return device;
}

/// The network: devices at hosts, and a switch.
class Star
{
  public:
    virtual ~Star() = default;
    /// The queue to a host.
    virtual Ptr<Queue<Packet>> PortQueue(size_t host) const = 0;

    /// Packets that queues of the switch dropped.
    uint64_t Dropped() const
    {
        uint64_t dropped = 0;
        for (size_t host = 0; host < hosts.GetN(); host++)
        {
            dropped += PortQueue(host)->GetTotalDroppedPackets();
        }
        return dropped;
    }

    NodeContainer hosts;
    std::vector<Ptr<NetDevice>> devices;
};

class CsmaStar : public Star
{
  public:
    CsmaStar(size_t count, double bps)
    {
        hosts.Create(count);
        auto center = CreateObject<Node>();
        auto bridge = CreateObject<BridgeNetDevice>();
        for (size_t i = 0; i < count; i++)
        {
            auto link = CreateObject<CsmaChannel>();
            link->SetAttribute("DataRate", DataRateValue(DataRate(static_cast<uint64_t>(bps))));
            link->SetAttribute("Delay", StringValue(LINK_DELAY));
            auto host = MakeDevice<CsmaNetDevice>(hosts.Get(i), bps, CSMA_BYTES, HOST_QUEUE);
            auto port = MakeDevice<CsmaNetDevice>(center, bps, CSMA_BYTES, PORT_QUEUE);
            host->Attach(link);
            port->Attach(link);
            devices.push_back(host);
            m_ports.push_back(port);
        }
        center->AddDevice(bridge);
        for (const auto& port : m_ports)
        {
            bridge->AddBridgePort(port);
        }
    }

    Ptr<Queue<Packet>> PortQueue(size_t host) const override
    {
        return m_ports[host]->GetQueue();
    }

  private:
    std::vector<Ptr<CsmaNetDevice>> m_ports;
};

class PointToPointStar : public Star
{
  public:
    PointToPointStar(size_t count, double bps)
    {
        hosts.Create(count);
        auto center = CreateObject<Node>();
        for (size_t i = 0; i < count; i++)
        {
            auto link = CreateObject<PointToPointChannel>();
            link->SetAttribute("Delay", StringValue(LINK_DELAY));
            auto host = MakeDevice<PointToPointNetDevice>(hosts.Get(i), bps, PPP_BYTES, HOST_QUEUE);
            auto port = MakeDevice<PointToPointNetDevice>(center, bps, PPP_BYTES, PORT_QUEUE);
            for (const auto& end : {host, port})
            {
                end->SetDataRate(DataRate(static_cast<uint64_t>(bps)));
                end->Attach(link);
            }
            port->SetReceiveCallback(MakeCallback(&PointToPointStar::Switch, this));
            devices.push_back(host);
            m_ports.push_back(port);
        }
    }

    Ptr<Queue<Packet>> PortQueue(size_t host) const override
    {
        return m_ports[host]->GetQueue();
    }

  private:
    /// Forwards by the last byte of an IPv4 destination, which is the last of the header without options.
    bool Switch(Ptr<NetDevice>, Ptr<const Packet> packet, uint16_t protocol, const Address&)
    {
        uint8_t header[20];
        if (protocol != 0x0800 || packet->CopyData(header, sizeof(header)) < sizeof(header))
        {
            return false;
        }
        const size_t host = header[19] - size_t{1};
        if (host >= m_ports.size())
        {
            return false;
        }
        const auto& port = m_ports[host];
        return port->Send(ConstCast<Packet>(packet), port->GetBroadcast(), protocol);
    }

    std::vector<Ptr<PointToPointNetDevice>> m_ports;
};

/// Samples the queue to the last host, and by how much the simulator is behind.
class Sampler
{
  public:
    Sampler(Ptr<Queue<Packet>> queue, const std::string& path)
        : m_queue(queue),
          m_simulator(DynamicCast<RealtimeSimulatorImpl>(Simulator::GetImplementation())),
          m_file(path.empty() ? nullptr : std::fopen(path.c_str(), "w"), &std::fclose)
    {
        if (!path.empty() && !m_file)
        {
            Fail("cannot write " + path);
        }
        if (m_file)
        {
            std::fprintf(m_file.get(), "time_ns,packets,lag_ns\n");
        }
        Simulator::Schedule(INTERVAL, &Sampler::Sample, this);
    }

  private:
    void Sample()
    {
        if (g_ends != 0)
        {
            Simulator::Stop();
            return;
        }
        const int64_t lag = (m_simulator->RealtimeNow() - Simulator::Now()).GetNanoSeconds();
        if (m_file)
        {
            std::fprintf(m_file.get(),
                         "%.0f,%u,%lld\n",
                         SecondsOn(CLOCK_REALTIME) * 1e9,
                         m_queue->GetNPackets(),
                         static_cast<long long>(std::max<int64_t>(lag, 0)));
        }
        Simulator::Schedule(INTERVAL, &Sampler::Sample, this);
    }

    Ptr<Queue<Packet>> m_queue;
    Ptr<RealtimeSimulatorImpl> m_simulator;
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> m_file;
};

void
Ready()
{
    std::printf("ready\n");
    std::fflush(stdout);
}

std::vector<std::string>
Split(const std::string& list)
{
    std::vector<std::string> words;
    std::istringstream in(list);
    for (std::string word; std::getline(in, word, ',');)
    {
        words.push_back(word);
    }
    return words;
}

} // namespace

int
main(int argc, char** argv)
{
    const Options options(argc,
                          argv,
                          {{"device", "csma"},
                           {"mbps", "100"},
                           {"namespaces", ""},
                           {"samples", ""},
                           {"seconds", "3600"}});
    const auto namespaces = Split(options.Text("namespaces"));
    if (namespaces.size() < 2 || namespaces.size() > 64)
    {
        Fail("--namespaces must name from 2 to 64 network namespaces, with commas between them");
    }
    const double bps = options.Number("mbps") * 1e6;
    if (bps < 1e6)
    {
        Fail("--mbps must be at least 1");
    }
    // Nanoseconds: the simulator compares its time with the clock in them.
    GlobalValue::Bind("SimulatorImplementationType", StringValue("ns3::RealtimeSimulatorImpl"));
    Simulator::SetScheduler(ObjectFactory("ns3::PriorityQueueScheduler"));

    std::unique_ptr<Star> star;
    const std::string& device = options.Text("device");
    if (device == "csma")
    {
        star = std::make_unique<CsmaStar>(namespaces.size(), bps);
    }
    else if (device == "point-to-point")
    {
        star = std::make_unique<PointToPointStar>(namespaces.size(), bps);
    }
    else
    {
        Fail("--device " + device + ": expected csma or point-to-point");
    }
    TapBridgeHelper taps;
    taps.SetAttribute("Mode", StringValue("UseLocal"));
    for (size_t i = 0; i < namespaces.size(); i++)
    {
        taps.SetAttribute("DeviceName", StringValue(LiveTap::Name(i)));
        taps.Install(star->hosts.Get(i), star->devices[i]);
        LiveTap::Expect(namespaces[i]);
    }
    const Sampler sampler(star->PortQueue(namespaces.size() - 1), options.Text("samples"));
    std::signal(SIGTERM, End);
    // The TAP devices start at time 0.
    Simulator::Schedule(MilliSeconds(10), &Ready);

    const Spent spent = RunFor(options.Number("seconds"));
    std::printf("{\"device\": \"%s\", \"mbps\": %g, \"dropped\": %llu, \"wall_s\": %.3f, \"cpu_s\": %.3f}\n",
                device.c_str(),
                bps / 1e6,
                static_cast<unsigned long long>(star->Dropped()),
                spent.wall_s,
                spent.cpu_s);
    Simulator::Destroy();
    return 0;
}
