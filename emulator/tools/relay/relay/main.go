// The relay of the local kubelet: copies bytes between pairs of connected sockets, which it gets over its standard
// input, a SOCK_SEQPACKET socket, as two descriptors a message. It ends when the other end of that socket closes.
//
// It is no part of the kubelet, since every call of a webhook and every request of a controller passes through it: in
// Python they waited for whatever else the kubelet was doing.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// closer is a connection of which one direction can be closed.
type closer interface {
	net.Conn
	CloseWrite() error
}

func main() {
	// A group's signal is meant for the kubelet, whose pods still need their connections while they end.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, "relay:", err)
		os.Exit(1)
	}
}

func serve() error {
	connection, err := net.FileConn(os.Stdin)
	if err != nil {
		return fmt.Errorf("standard input: %w", err)
	}
	control, ok := connection.(*net.UnixConn)
	if !ok {
		return fmt.Errorf("standard input is a %T, not a Unix socket", connection)
	}
	data, rights := make([]byte, 16), make([]byte, syscall.CmsgSpace(2*4))
	for {
		length, lengthOfRights, _, _, err := control.ReadMsgUnix(data, rights)
		if length == 0 || err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		left, right, err := pair(rights[:lengthOfRights])
		if err != nil {
			fmt.Fprintln(os.Stderr, "relay:", err)
			continue
		}
		go join(left, right)
	}
}

// pair returns the two connections of a message.
func pair(rights []byte) (closer, closer, error) {
	messages, err := syscall.ParseSocketControlMessage(rights)
	if err != nil || len(messages) != 1 {
		return nil, nil, fmt.Errorf("a message with %d sets of descriptors: %v", len(messages), err)
	}
	descriptors, err := syscall.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, nil, err
	}
	var found []closer
	for _, descriptor := range descriptors {
		file := os.NewFile(uintptr(descriptor), "connection")
		connection, failed := net.FileConn(file)
		file.Close()
		end, ok := connection.(closer)
		if failed != nil || !ok {
			err = fmt.Errorf("a descriptor is no stream: %v", failed)
			continue
		}
		found = append(found, end)
	}
	if err == nil && len(found) == 2 {
		return found[0], found[1], nil
	}
	for _, end := range found {
		end.Close()
	}
	return nil, nil, fmt.Errorf("a message with %d connections of 2: %v", len(found), err)
}

// join copies in both directions until both have ended, then closes both connections.
func join(left, right closer) {
	defer left.Close()
	defer right.Close()
	var directions sync.WaitGroup
	directions.Go(func() { copyTo(left, right) })
	directions.Go(func() { copyTo(right, left) })
	directions.Wait()
}

// copyTo copies until the source ends, and passes the end on; after an error neither direction can go on.
//
// It hides from io.Copy that these are sockets, between which it would splice(2), by a pipe of 1 MiB for each direction:
// with some thirty connections an ordinary user has had all the memory that Linux lets pipes of one user have
// (pipe(7), /proc/sys/fs/pipe-user-pages-soft), and the pipes of all their other programs hold 8 KiB from then on.
func copyTo(target, source closer) {
	if _, err := io.Copy(struct{ io.Writer }{target}, struct{ io.Reader }{source}); err != nil || target.CloseWrite() != nil {
		source.Close()
		target.Close()
	}
}
