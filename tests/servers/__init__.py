"""What the tests talk to: real sshds and hostile sockets, all of them on loopback."""
