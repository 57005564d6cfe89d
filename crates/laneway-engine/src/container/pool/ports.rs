//! The ports of this node that containers get, behind one lock, and the probe that says whether the host has one free.

use std::net::{Ipv4Addr, TcpListener};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use laneway_core::pool::{Exhausted, Ports};

/// Shared by all pools of a node.
#[derive(Debug, Clone)]
pub(super) struct SharedPorts(Arc<Mutex<Ports>>);

impl SharedPorts {
    pub(super) fn new(range: RangeInclusive<u16>) -> Self {
        Self(Arc::new(Mutex::new(Ports::new(range))))
    }

    pub(super) fn take(&self) -> Result<Port, Exhausted> {
        let number = self.locked().take(is_free)?;
        Ok(Port { number, of: self.clone() })
    }

    /// Held for a few system calls at most.
    fn locked(&self) -> MutexGuard<'_, Ports> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A port that is somebody's until this is dropped.
#[derive(Debug)]
pub(super) struct Port {
    pub(super) number: u16,
    of: SharedPorts,
}

impl Drop for Port {
    fn drop(&mut self) {
        self.of.locked().give_back(self.number);
    }
}

/// Whether nobody listens there. Somebody may begin to in the next moment; then the engine says so.
fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_on_which_somebody_listens_is_passed_over_and_comes_back_when_it_is_dropped() {
        let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let used = other.local_addr().expect("an address").port();
        let ports = SharedPorts::new(used..=used);
        assert!(ports.take().is_err(), "somebody listens there");
        drop(other);
        let port = ports.take().expect("it is free now");
        assert_eq!(port.number, used);
        assert!(ports.take().is_err(), "it is given out");
        drop(port);
        assert!(ports.take().is_ok());
    }
}
