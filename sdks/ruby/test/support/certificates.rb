# frozen_string_literal: true

require 'openssl'

# A CA in a folder, and certificates that it signs.
class Certificates
  Pair = Struct.new(:cert, :key)

  def initialize(folder, name = 'ca')
    @folder = folder
    @name = name
    @key = OpenSSL::PKey::EC.generate('prime256v1')
    @authority = sign(certificate(name, @key), [['basicConstraints', 'CA:TRUE', true],
                                                ['keyUsage', 'keyCertSign, cRLSign', true]])
    write('ca.pem', @authority)
  end

  # @return [String] the file with the certificate of the CA
  def ca
    path('ca.pem')
  end

  def server
    pair('server', [['subjectAltName', 'DNS:localhost'], %w[extendedKeyUsage serverAuth]])
  end

  def client(name = 'client')
    pair(name, [%w[extendedKeyUsage clientAuth]])
  end

  private

  def pair(name, extensions)
    key = OpenSSL::PKey::EC.generate('prime256v1')
    write("#{name}.pem", sign(certificate(name, key), extensions))
    File.write(path("#{name}.key"), key.to_pem, perm: 0o600)
    Pair.new(path("#{name}.pem"), path("#{name}.key"))
  end

  def certificate(name, key)
    OpenSSL::X509::Certificate.new.tap do |made|
      made.version = 2
      made.serial = Random.rand(1 << 60)
      made.subject = OpenSSL::X509::Name.parse("/CN=#{name}")
      made.issuer = @authority ? @authority.subject : made.subject
      made.public_key = key
      made.not_before = Time.now - 60
      made.not_after = Time.now + 3600
    end
  end

  def sign(made, extensions)
    factory = OpenSSL::X509::ExtensionFactory.new
    extensions.each { |extension| made.add_extension(factory.create_extension(*extension)) }
    made.sign(@key, OpenSSL::Digest.new('SHA256'))
  end

  def write(file, certificate)
    File.write(path(file), certificate.to_pem)
  end

  def path(file)
    File.join(@folder, "#{@name}-#{file}")
  end
end
