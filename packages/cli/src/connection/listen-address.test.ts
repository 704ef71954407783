import { expect, test } from 'vitest';
import { readListenAddress, toUrl } from './listen-address.ts';

const env = { PORT: '5005' };

test.each([
  ['', 'http://127.0.0.1:4766'],
  ['gateway:\n  port: 5001\n  host: 127.0.0.2\n', 'http://127.0.0.2:5001'],
  [
    '# gateway:\n#   port: 1\nproviders:\n  local:\n    port: 7\ngateway:\n  # a comment\n  host: "0.0.0.0"\n\n  port: 5002 # where\nrouting: {}\n',
    'http://127.0.0.1:5002',
  ],
  ['gateway: { host: "::1", port: 5003 }\n', 'http://[::1]:5003'],
  ['gateway:\r\n    web:\r\n      port: 9\r\n    port: 5004\r\n', 'http://127.0.0.1:5004'],
  ["gateway:\n  'port': '${PORT}'\n", 'http://127.0.0.1:5005'],
  ['gateway:\n  port: 0\n', 'http://127.0.0.1:4766'],
  ['gateway:\n  host: "::"\n', 'http://[::1]:4766'],
  ['gateway:\n  tls:\n    certPath: cert.pem\n    keyPath: key.pem\n  port: 5006\n', 'https://127.0.0.1:5006'],
  ['gateway: { tls: { certPath: cert.pem, keyPath: key.pem }, port: 5007 }\n', 'https://127.0.0.1:5007'],
  ['gateway:\n  # tls: off\n  port: 5008\n', 'http://127.0.0.1:5008'],
])('config %j listens at %s', (yaml, url) => {
  expect(toUrl(readListenAddress(yaml, env))).toBe(url);
});
