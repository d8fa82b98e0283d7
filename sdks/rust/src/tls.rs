//! TLS and client certificates.

use std::path::{Path, PathBuf};

use tonic::transport::{Certificate, ClientTlsConfig, Identity};

use crate::error::{Error, Result};

/// Whom to trust, and what to show. Files are read again when the client connects anew, so they can be replaced at any
/// time.
///
/// ```
/// use fila_client::TlsConfig;
///
/// let mutual = TlsConfig::new().ca("ca.pem").identity("client.pem", "client.key").server_name("broker.example");
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct TlsConfig {
    ca: Option<PathBuf>,
    identity: Option<(PathBuf, PathBuf)>,
    server_name: Option<String>,
}

impl TlsConfig {
    /// Trusts the CAs of the system.
    pub fn new() -> Self {
        Self::default()
    }

    /// Trusts the CAs in this PEM file, instead of those of the system.
    pub fn ca(mut self, path: impl Into<PathBuf>) -> Self {
        self.ca = Some(path.into());
        self
    }

    /// Shows this certificate (PEM, with its key) to the server.
    pub fn identity(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.identity = Some((certificate.into(), key.into()));
        self
    }

    /// The name that the certificate of the server must have, if it is not the host of the address.
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.server_name = Some(name.into());
        self
    }

    pub(crate) fn load(&self) -> Result<ClientTlsConfig> {
        let mut config = ClientTlsConfig::new();
        config = match &self.ca {
            Some(path) => config.ca_certificate(Certificate::from_pem(read(path)?)),
            None => config.with_native_roots(),
        };
        if let Some((certificate, key)) = &self.identity {
            config = config.identity(Identity::from_pem(read(certificate)?, read(key)?));
        }
        if let Some(name) = &self.server_name {
            config = config.domain_name(name);
        }
        Ok(config)
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| Error::own(Error::Tls, format!("cannot read {}: {error}", path.display())))
}
