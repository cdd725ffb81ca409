// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// TAP devices for TapBridge. TapBridge starts a program to create each of them, by a path of the machine that built
// ns-3, and Debian's package has no such program. So this replaces execlp(3), by which the library calls it after a fork:
// the child creates the device, directly in the namespace of the host, and sends its descriptor to the library.
#pragma once

#include <cstdarg>
#include <cstring>
#include <fcntl.h>

#include <linux/if_tun.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sched.h>
#include <string>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <vector>

namespace ns3
{
// Of the library, in a header that is not installed.
bool TapStringToBuffer(std::string text, uint8_t* buffer, uint32_t* length);
} // namespace ns3

namespace LiveTap
{

/// The number by which the library recognises a descriptor. Its header is not installed.
constexpr uint32_t MAGIC = 95549;
/// Packets that a device holds before the simulator reads them.
constexpr int QUEUE = 8192;

inline std::vector<std::string> g_namespaces;

/// Adds a host, in the order of the devices.
inline void
Expect(const std::string& name)
{
    g_namespaces.push_back(name);
}

/// The name of the device of a host, until it is renamed.
inline std::string
Name(size_t host)
{
    return "tap" + std::to_string(host);
}

[[noreturn]] inline void
Abort(const std::string& what)
{
    std::fprintf(stderr, "error: cannot %s: %s\n", what.c_str(), std::strerror(errno));
    _exit(1);
}

/// Creates the device `name` within the current network namespace, and sets it up. Its address ends in the number of the host,
/// from 1.
inline int
Open(const std::string& name, size_t host)
{
    const int device = open("/dev/net/tun", O_RDWR);
    ifreq request{};
    std::strncpy(request.ifr_name, name.c_str(), IFNAMSIZ - 1);
    request.ifr_flags = IFF_TAP | IFF_NO_PI;
    if (device < 0 || ioctl(device, TUNSETIFF, &request) < 0)
    {
        Abort("create the TAP device " + name);
    }
    const int socket_ = socket(AF_INET, SOCK_DGRAM, 0);
    const uint8_t address[] = {2, 0, 0, 0, 0, static_cast<uint8_t>(host + 1)};
    request.ifr_hwaddr.sa_family = ARPHRD_ETHER;
    std::memcpy(request.ifr_hwaddr.sa_data, address, sizeof(address));
    if (ioctl(socket_, SIOCSIFHWADDR, &request) < 0)
    {
        Abort("set the address of " + name);
    }
    request.ifr_qlen = QUEUE;
    if (ioctl(socket_, SIOCSIFTXQLEN, &request) < 0)
    {
        Abort("set the queue length of " + name);
    }
    request.ifr_flags = IFF_UP | IFF_RUNNING | IFF_BROADCAST | IFF_MULTICAST;
    if (ioctl(socket_, SIOCSIFFLAGS, &request) < 0)
    {
        Abort("set up " + name);
    }
    return device;
}

/// Sends a descriptor by `sender` to the socket whose address the library has encoded.
inline void
Send(int sender, int device, const std::string& encoded)
{
    sockaddr_un to{};
    uint32_t length = 0;
    if (encoded.size() > 3 * sizeof(to) ||
        !ns3::TapStringToBuffer(encoded, reinterpret_cast<uint8_t*>(&to), &length))
    {
        errno = EINVAL;
        Abort("read the address of the library's socket");
    }
    uint32_t magic = MAGIC;
    iovec content{&magic, sizeof(magic)};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_name = &to;
    message.msg_namelen = length;
    message.msg_iov = &content;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &device, sizeof(device));
    if (sendmsg(sender, &message, 0) < 0)
    {
        Abort("send the TAP device to ns-3");
    }
}

/// Creates the device that the words ask for: `-dNAME` and `-pSOCKET`.
[[noreturn]] inline void
Create(const std::vector<std::string>& words)
{
    std::string name;
    std::string encoded;
    for (const auto& word : words)
    {
        const std::string option = word.substr(0, 2);
        if (option == "-d")
        {
            name = word.substr(2);
        }
        else if (option == "-p")
        {
            encoded = word.substr(2);
        }
    }
    size_t host = 0;
    while (host < g_namespaces.size() && Name(host) != name)
    {
        host++;
    }
    const std::string path = host < g_namespaces.size() ? "/run/netns/" + g_namespaces[host] : "";
    // The library's socket has an abstract address, which only sockets of the same namespace reach.
    const int sender = socket(AF_UNIX, SOCK_DGRAM, 0);
    const int space = open(path.c_str(), O_RDONLY);
    if (space < 0 || setns(space, CLONE_NEWNET) < 0)
    {
        Abort("enter the network namespace of " + name + ", " + path);
    }
    Send(sender, Open(name, host), encoded);
    _exit(0);
}

} // namespace LiveTap

extern "C" int
execlp(const char*, const char* first, ...)
{
    std::vector<std::string> words;
    va_list rest;
    va_start(rest, first);
    for (const char* word = first; word != nullptr; word = va_arg(rest, const char*))
    {
        words.emplace_back(word);
    }
    va_end(rest);
    LiveTap::Create(words);
}
