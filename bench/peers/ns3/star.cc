// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// star: one router, N hosts, links of 10 Gbit/s, full-size packets between random hosts, Poisson arrivals. Measures the
// packets per second that ns-3 delivers. Prints one line of JSON.
//
//   --mode raw   point-to-point devices and a switch of a few lines that reads the destination from the packet's
//                first two bytes: the lowest cost of a packet in ns-3 on links with delay
//   --mode udp   IPv4 and UDP over the same devices, static routes, no queue discs
// Every packet takes 1538 bytes on a link: a gap between frames makes up for the difference between PPP's header and
// Ethernet's framing. Arrivals are one Poisson process over all hosts with a generator of the standard library, so that
// the program itself takes little time.

#include <array>
#include <memory>
#include <random>
#include <vector>

#include "program.h"

#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

using namespace ns3;

namespace
{

constexpr double LINK_BPS = 10e9;
/// Seconds that a full-size packet takes on a link.
constexpr double PACKET_S = (MTU + FRAMING_BYTES) * 8 / LINK_BPS;
/// Propagation delay of a link.
const char* const LINK_DELAY = "1us";
/// Queue of a device in full-size packets.
const char* const BUFFER = "1024p";

using Device = Ptr<PointToPointNetDevice>;

/// The network between hosts.
class Carrier
{
  public:
    virtual ~Carrier() = default;
    /// Sends a full-size packet.
    virtual void Send(uint16_t source, uint16_t destination) = 0;

    uint64_t delivered = 0;
};

/// The hosts' devices and, of the same index, those at the router's side.
struct Star
{
    explicit Star(uint16_t count)
        : hosts(count),
          ports(count)
    {
        nodes.Create(count);
        for (uint16_t i = 0; i < count; i++)
        {
            hosts[i] = Attach(nodes.Get(i));
            ports[i] = Attach(router);
            auto link = CreateObject<PointToPointChannel>();
            link->SetAttribute("Delay", StringValue(LINK_DELAY));
            hosts[i]->Attach(link);
            ports[i]->Attach(link);
        }
    }

    uint64_t Dropped() const
    {
        uint64_t dropped = 0;
        for (const auto& side : {hosts, ports})
        {
            for (const auto& device : side)
            {
                dropped += device->GetQueue()->GetTotalDroppedPackets();
            }
        }
        return dropped;
    }

    NodeContainer nodes;
    Ptr<Node> router = CreateObject<Node>();
    std::vector<Device> hosts;
    std::vector<Device> ports;

  private:
    static Device Attach(Ptr<Node> node)
    {
        auto queue = CreateObject<DropTailQueue<Packet>>();
        queue->SetAttribute("MaxSize", StringValue(BUFFER));
        auto device = CreateObject<PointToPointNetDevice>();
        device->SetAddress(Mac48Address::Allocate());
        device->SetDataRate(DataRate(static_cast<uint64_t>(LINK_BPS)));
        device->SetInterframeGap(Seconds((FRAMING_BYTES - PPP_BYTES) * 8 / LINK_BPS));
        device->SetQueue(queue);
        node->AddDevice(device);
        return device;
    }
};

/// No protocol above the devices.
class Raw : public Carrier
{
  public:
    explicit Raw(const Star& star)
        : m_star(star),
          m_broadcast(star.hosts[0]->GetBroadcast())
    {
        for (uint16_t i = 0; i < star.hosts.size(); i++)
        {
            const std::array<uint8_t, 2> destination = {static_cast<uint8_t>(i), static_cast<uint8_t>(i >> 8)};
            auto packet = Create<Packet>(destination.data(), destination.size());
            packet->AddPaddingAtEnd(MTU - destination.size());
            m_templates.push_back(packet);
            star.ports[i]->SetReceiveCallback(MakeCallback(&Raw::Switch, this));
            star.hosts[i]->SetReceiveCallback(MakeCallback(&Raw::Receive, this));
        }
    }

    void Send(uint16_t source, uint16_t destination) override
    {
        m_star.hosts[source]->Send(m_templates[destination]->Copy(), m_broadcast, PROTOCOL);
    }

  private:
    bool Switch(Ptr<NetDevice>, Ptr<const Packet> packet, uint16_t protocol, const Address&)
    {
        std::array<uint8_t, 2> destination;
        packet->CopyData(destination.data(), destination.size());
        const auto& port = m_star.ports[destination[0] | destination[1] << 8];
        // The channel has made a copy for its receiver, so none is needed here.
        return port->Send(ConstCast<Packet>(packet), m_broadcast, protocol);
    }

    bool Receive(Ptr<NetDevice>, Ptr<const Packet>, uint16_t, const Address&)
    {
        delivered++;
        return true;
    }

    /// The device accepts only IP's protocol numbers.
    static constexpr uint16_t PROTOCOL = 0x0800;

    const Star& m_star;
    const Address m_broadcast;
    std::vector<Ptr<Packet>> m_templates;
};

/// IPv4 and UDP.
class Udp : public Carrier
{
  public:
    explicit Udp(const Star& star)
    {
        Ipv4StaticRoutingHelper routing;
        InternetStackHelper stack;
        stack.SetRoutingHelper(routing);
        stack.SetIpv6StackInstall(false);
        stack.Install(star.nodes);
        stack.Install(star.router);
        Ipv4AddressHelper networks("10.0.0.0", "255.255.255.252");
        for (uint16_t i = 0; i < star.hosts.size(); i++)
        {
            NetDeviceContainer both(star.hosts[i]);
            both.Add(star.ports[i]);
            const Ipv4InterfaceContainer interfaces = networks.Assign(both);
            networks.NewNetwork();
            const auto [ip, interface] = interfaces.Get(0);
            routing.GetStaticRouting(ip)->SetDefaultRoute(interfaces.GetAddress(1), interface);
            m_addresses.push_back(InetSocketAddress(interfaces.GetAddress(0), PORT));
        }
        for (uint16_t i = 0; i < star.hosts.size(); i++)
        {
            auto socket = Socket::CreateSocket(star.nodes.Get(i), UdpSocketFactory::GetTypeId());
            socket->Bind(m_addresses[i]);
            socket->SetRecvCallback(MakeCallback(&Udp::Receive, this));
            m_sockets.push_back(socket);
        }
    }

    void Send(uint16_t source, uint16_t destination) override
    {
        m_sockets[source]->SendTo(Create<Packet>(MTU - HEADER_BYTES), 0, m_addresses[destination]);
    }

  private:
    void Receive(Ptr<Socket> socket)
    {
        while (socket->Recv())
        {
            delivered++;
        }
    }

    static constexpr uint16_t PORT = 9;
    /// Of IPv4 and UDP.
    static constexpr uint32_t HEADER_BYTES = 20 + 8;

    std::vector<Address> m_addresses;
    std::vector<Ptr<Socket>> m_sockets;
};

/// Poisson arrivals from all hosts together.
class Source
{
  public:
    Source(Carrier& carrier, uint16_t hosts, double load, uint64_t seed)
        : m_carrier(carrier),
          m_random(seed),
          m_gap_s(hosts * load / PACKET_S),
          m_host(0, hosts - 1),
          m_other(1, hosts - 1),
          m_hosts(hosts)
    {
        ScheduleNext();
    }

    uint64_t sent = 0;

  private:
    void Send()
    {
        const uint16_t source = m_host(m_random);
        const uint16_t destination = (source + m_other(m_random)) % m_hosts;
        m_carrier.Send(source, destination);
        sent++;
        ScheduleNext();
    }

    void ScheduleNext()
    {
        Simulator::Schedule(PicoSeconds(std::llround(m_gap_s(m_random) * 1e12)), &Source::Send, this);
    }

    Carrier& m_carrier;
    std::mt19937_64 m_random;
    std::exponential_distribution<double> m_gap_s;
    std::uniform_int_distribution<uint16_t> m_host;
    std::uniform_int_distribution<uint16_t> m_other;
    const uint16_t m_hosts;
};

} // namespace

int
main(int argc, char** argv)
{
    const Options options(argc,
                          argv,
                          {{"mode", "raw"},
                           {"hosts", "32"},
                           {"load", "0.8"},
                           {"seconds", "0.1"},
                           {"seed", "1"}});
    const double hosts = options.Number("hosts");
    if (hosts < 2 || hosts > 1024)
    {
        Fail("--hosts must be from 2 to 1024");
    }
    const double load = options.Number("load");
    if (load <= 0.0)
    {
        Fail("--load must be more than 0");
    }
    const double seconds = options.Number("seconds");
    const std::string& mode = options.Text("mode");

    SetUp();
    const Star star(hosts);
    std::unique_ptr<Carrier> carrier;
    if (mode == "raw")
    {
        carrier = std::make_unique<Raw>(star);
    }
    else if (mode == "udp")
    {
        carrier = std::make_unique<Udp>(star);
    }
    else
    {
        Fail("--mode " + mode + ": expected raw or udp");
    }
    const Source source(*carrier, hosts, load, options.Number("seed"));

    const Spent spent = RunFor(seconds);
    std::printf("{\"mode\": \"%s\", \"hosts\": %.0f, \"load\": %g, \"emulated_s\": %g, \"sent\": %llu, "
                "\"delivered\": %llu, \"dropped\": %llu, \"wall_s\": %.3f, \"cpu_s\": %.3f}\n",
                mode.c_str(),
                hosts,
                load,
                seconds,
                static_cast<unsigned long long>(source.sent),
                static_cast<unsigned long long>(carrier->delivered),
                static_cast<unsigned long long>(star.Dropped()),
                spent.wall_s,
                spent.cpu_s);
    Simulator::Destroy();
    return 0;
}
