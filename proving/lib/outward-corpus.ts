/**
 * Addresses that a hostile caller may pass (reliability.md §4.7), each with its name or spelling; `port` is that of the listeners that
 * must not be reached. No public address is among them.
 */
export function hostileUrls(port: number): readonly string[] {
  const hosts = [
    // Spellings of the loopback.
    '127.0.0.2',
    '2130706434',
    '0x7f000002',
    '017700000002',
    '0177.0.0.2',
    '0x7f.0.0.2',
    '127.0.2',
    '127.2',
    '127.0.0.2.',
    '１２７.０.０.２',
    '127。0。0。2',
    '①②⑦.0.0.2',
    '127．0．0．2',
    '%31%32%37.0.0.2',
    '[::1]',
    '[0:0:0:0:0:0:0:1]',
    '[::ffff:127.0.0.2]',
    '[::ffff:7f00:2]',
    '[::127.0.0.2]',
    '[::ffff:0:127.0.0.2]',
    '0',
    '0.0.0.0',
    '0x0',
    '[::]',
    // Metadata services.
    '169.254.169.254',
    '2852039166',
    '0xa9fea9fe',
    '0251.0376.0251.0376',
    '[::ffff:a9fe:a9fe]',
    '[fd00:ec2::254]',
    '100.100.100.200',
    '192.0.0.192',
    // Networks that are not public.
    '10.0.0.1',
    '172.16.0.1',
    '192.168.0.1',
    '100.64.0.1',
    '198.18.0.1',
    '192.0.2.1',
    '224.0.0.1',
    '240.0.0.1',
    '255.255.255.255',
    '[fe80::1]',
    '[fc00::1]',
    '[fec0::1]',
    '[ff02::1]',
    '[2001:db8::1]',
    '[100::1]',
    // Transition forms.
    '[64:ff9b::127.0.0.2]',
    '[64:ff9b::7f00:2]',
    '[64:ff9b:1::7f00:2]',
    '[2002:7f00:2::]',
    '[2002:a9fe:a9fe::1]',
    '[2001:0:7f00:2::]',
    ...Object.keys(hostileNames),
  ];
  return [
    ...hosts.map((host) => `http://${host}:${port}/`),
    `https://127.0.0.2:${port}/`,
    `http://user:pass@127.0.0.2:${port}/`,
    `http://site.example@127.0.0.2:${port}/`,
    `http://site.example:80@127.0.0.2:${port}/`,
    `http://127.0.0.2:${port}#@site.example/`,
    `http://127.0.0.2:${port}\\@site.example/`,
    `http:\\\\127.0.0.2:${port}/`,
    `http:/127.0.0.2:${port}/`,
    `  http://127.0.0.2:${port}/`,
    `http://127.0.\t0.2:${port}/`,
    `ht\ntp://127.0.0.2:${port}/`,
    'http://127.0.0.2:0/',
    'http://127.0.0.2:22/',
    'http://127.0.0.2:6379/',
    'http://[fe80::1%25eth0]/',
    '//127.0.0.2/',
    'file:///etc/passwd',
    'gopher://127.0.0.2:70/_x',
    'data:text/plain,hi',
    'ftp://127.0.0.2/',
    `ws://127.0.0.2:${port}/`,
    'blob:http://127.0.0.2/x',
    'unix:/var/run/docker.sock',
    'dict://127.0.0.2:11211/',
  ];
}

/** Hostile names and their addresses; `<site>` is the address that is let through. */
export const hostileNames: Readonly<Record<string, readonly string[]>> = {
  localhost: ['127.0.0.2', '::1'],
  'localhost.': ['127.0.0.2'],
  'internal.example': ['127.0.0.2'],
  'metadata.google.internal': ['169.254.169.254'],
  'two-answers.example': ['<site>', '127.0.0.2'],
  'mapped.example': ['::ffff:127.0.0.2'],
  'compatible.example': ['::7f00:2'],
  'zoned.example': ['fe80::1%lo'],
  'nat64.example': ['64:ff9b::7f00:2'],
  'unspecified.example': ['0.0.0.0'],
  'nowhere.example': [],
};

export const redirects: readonly number[] = [301, 302, 303, 307, 308];

/** Addresses that a header can carry and that lead elsewhere. */
export function redirectable(urls: readonly string[]): readonly string[] {
  return urls.filter((url) => /^[a-z]+:[\x21-\x7e]+$/.test(url) && !/^https?:(?!\/\/)/.test(url));
}
