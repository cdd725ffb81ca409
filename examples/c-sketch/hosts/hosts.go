// Hosts counts generated packets by their source, one by one, and asks how many may pass before the next sampled one.
//
//	CGO_CFLAGS="$(pkg-config --cflags thalweg_sketch)" CGO_LDFLAGS="$(pkg-config --libs thalweg_sketch)" go run .
package main

/*
#include <stdlib.h>
#include <thalweg_sketch.h>
*/
import "C"

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log"
	"net/netip"
	"runtime"
	"unsafe"
)

// Sketch counts IPv4 addresses with p = 1/64.
type Sketch struct{ c *C.thalweg_sketch }

// call locks the thread, because the text of an error belongs to the thread of the call.
func call(function func() C.thalweg_status) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if function() != C.THALWEG_STATUS_OK {
		return errors.New(C.GoString(C.thalweg_last_error()))
	}
	return nil
}

// NewSketch creates an empty sketch.
func NewSketch() (*Sketch, error) {
	var options C.thalweg_sketch_options
	sketch := &Sketch{}
	err := call(func() C.thalweg_status {
		if status := C.thalweg_sketch_options_init(&options, C.sizeof_thalweg_sketch_options); status != C.THALWEG_STATUS_OK {
			return status
		}
		options.kind = C.THALWEG_KIND_UNIV_MON
		options.width = 1024
		options.inverse_probability = 64
		return C.thalweg_sketch_create(&options, &sketch.c)
	})
	return sketch, err
}

// Close frees the sketch.
func (s *Sketch) Close() { C.thalweg_sketch_free(s.c) }

// Unsampled returns how many packets may pass unparsed.
func (s *Sketch) Unsampled() uint64 { return uint64(C.thalweg_sketch_unsampled(s.c)) }

// Skip counts packets that pass unparsed.
func (s *Sketch) Skip(packets uint64) { C.thalweg_sketch_skip(s.c, C.uint64_t(packets)) }

// Count counts the next packet.
func (s *Sketch) Count(source [4]byte) error {
	return call(func() C.thalweg_status {
		return C.thalweg_sketch_update(s.c, (*C.uint8_t)(unsafe.Pointer(&source[0])), 4, nil, 1)
	})
}

// Top prints the largest hosts.
func (s *Sketch) Top() error {
	const most = 3
	var keys [most * C.THALWEG_KEY_MAX]byte
	var lengths [most]C.size_t
	var estimates [most]C.thalweg_estimate
	var found C.size_t
	err := call(func() C.thalweg_status {
		return C.thalweg_sketch_largest(s.c, most, (*C.uint8_t)(unsafe.Pointer(&keys[0])), &lengths[0], &estimates[0], &found)
	})
	for i := 0; i < int(found); i++ {
		key := keys[i*C.THALWEG_KEY_MAX:]
		address := netip.AddrFrom4([4]byte{key[0], key[1], key[2], key[3]})
		e := estimates[i]
		fmt.Printf("%v %.0f [%.0f, %.0f]\n", address, e.value, e.lower, e.upper)
	}
	return err
}

func main() {
	sketch, err := NewSketch()
	if err != nil {
		log.Fatal(err)
	}
	defer sketch.Close()

	// 2,000,000 packets: host 10.0.0.1 sends half, 10.0.0.2 a quarter, and so on.
	const packets = 2_000_000
	parsed := 0
	for packet := uint64(1); packet <= packets; packet++ {
		if unsampled := min(sketch.Unsampled(), packets-packet+1); unsampled > 0 {
			sketch.Skip(unsampled)
			packet += unsampled - 1
			continue
		}
		var source [4]byte
		host := 1
		for packet>>(host-1)&1 == 0 {
			host++
		}
		binary.BigEndian.PutUint32(source[:], 10<<24|uint32(host))
		if err := sketch.Count(source); err != nil {
			log.Fatal(err)
		}
		parsed++
	}
	fmt.Printf("%d packets, %d parsed\n", packets, parsed)
	if err := sketch.Top(); err != nil {
		log.Fatal(err)
	}
}

func min(a, b uint64) uint64 {
	if a < b {
		return a
	}
	return b
}
