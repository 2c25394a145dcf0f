package cli

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The type pipe is the write end of a pipe. Linux reports the number of unread bytes in a pipe.
type pipe struct {
	raw  syscall.RawConn
	size int  // original size in bytes
	page bool // the pipe has one buffer, so the pipe is writable (for poll) only when it is empty
}

var _ outlet = (*pipe)(nil)

// outletOf returns an outlet if the output is a pipe, and otherwise nil. The function outletOf makes the buffer of the
// pipe as small as possible. Because of the small buffer, the consumer reads the lines of one write before the next
// write.
func outletOf(to io.Writer) outlet {
	file, ok := to.(*os.File)
	if !ok {
		return nil
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return nil
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return nil
	}
	p := &pipe{raw: raw}
	if _, err := p.unread(); err != nil {
		return nil
	}
	_ = p.do(func(fd int) (err error) {
		if p.size, err = unix.FcntlInt(uintptr(fd), unix.F_GETPIPE_SZ, 0); err != nil {
			return err
		}
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, os.Getpagesize())
		p.page = err == nil // fails if the pipe contains more unread data
		return err
	})
	return p
}

// The method "do" runs a system call on the file descriptor of the pipe, without a change of the descriptor's blocking
// mode.
func (p *pipe) do(call func(fd int) error) (err error) {
	failed := p.raw.Control(func(fd uintptr) {
		for {
			if err = call(int(fd)); !errors.Is(err, unix.EINTR) {
				return
			}
		}
	})
	return errors.Join(failed, err)
}

func (p *pipe) unread() (n int, err error) {
	err = p.do(func(fd int) error {
		bytes, err := unix.IoctlGetUint32(fd, unix.TIOCINQ) // FIONREAD
		n = int(bytes)
		return err
	})
	return n, err
}

// pollStep is the time between two checks of a pipe whose size could not be reduced.
const pollStep = 5 * time.Millisecond

func (p *pipe) drained(most time.Duration) (unread int, err error) {
	for end := time.Now().Add(most); ; {
		if unread, err = p.unread(); err != nil || unread == 0 {
			return unread, err
		}
		left := time.Until(end)
		if left <= 0 {
			return unread, nil
		}
		gone, err := p.poll(left)
		if err != nil {
			return unread, err
		}
		if gone {
			if unread, err = p.unread(); err == nil && unread > 0 {
				err = unix.EPIPE
			}
			return unread, err
		}
	}
}

// The method "poll" waits until the consumer has emptied the pipe, or until the given time has passed. The result
// "gone" is true if no process can read from the pipe any more.
func (p *pipe) poll(most time.Duration) (gone bool, err error) {
	events := int16(unix.POLLOUT)
	if !p.page {
		events, most = 0, min(most, pollStep)
	}
	err = p.do(func(fd int) error {
		fds := []unix.PollFd{{Fd: int32(fd), Events: events}}
		_, err := unix.Poll(fds, int(most.Milliseconds())+1)
		gone = fds[0].Revents&unix.POLLERR != 0
		return err
	})
	return gone, err
}

func (p *pipe) restore() {
	if p.page {
		_ = p.do(func(fd int) error {
			_, err := unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, p.size)
			return err
		})
	}
}
