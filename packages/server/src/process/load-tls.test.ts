import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeAuthority, makeCertificate, writePair } from '@gatehouse/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { loadRootConfig } from './load-root-config.ts';

const dayMs = 86_400_000;
let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'gatehouse-tls-'));
});
afterAll(() => rm(dir, { recursive: true, force: true }));

const load = (yaml: string) => () => loadRootConfig({ path: join(dir, 'config.yaml'), text: `gateway:\n  tls: ${yaml}\n` }, {}, {});

it('a start is refused, naming the key, for files that are missing, foreign, readable by all, expired or unusable', async () => {
  const authority = await makeAuthority('Test Authority');
  const good = await makeCertificate('localhost', authority);
  await writePair(dir, 'authority', authority);
  await writePair(dir, 'expired', await makeCertificate('old', authority, { fromMs: Date.now() - 9 * dayMs, toMs: Date.now() - dayMs }));
  await writePair(dir, 'early', await makeCertificate('early', authority, { fromMs: Date.now() + dayMs }));
  await writePair(dir, 'open', good);
  await chmod(join(dir, 'open.key'), 0o644);
  await writePair(dir, 'ok', good);
  await writeFile(join(dir, 'text.crt'), 'no certificate');
  const cases: readonly (readonly [string, RegExp])[] = [
    ['{ certPath: none.crt, keyPath: ok.key }', /gateway\.tls\.certPath: there is no file .*none\.crt/],
    ['{ certPath: text.crt, keyPath: ok.key }', /gateway\.tls\.certPath: holds no certificate; expected PEM/],
    ['{ certPath: ok.crt, keyPath: ok.crt }', /gateway\.tls\.keyPath: holds no private key/],
    ['{ certPath: ok.crt, keyPath: authority.key }', /gateway\.tls\.keyPath: is not the private key of the certificate/],
    ['{ certPath: open.crt, keyPath: open.key }', /gateway\.tls\.keyPath: can be used by every user/],
    ['{ certPath: expired.crt, keyPath: expired.key }', /gateway\.tls\.certPath: the certificate CN=old expired on 20/],
    ['{ certPath: early.crt, keyPath: early.key }', /gateway\.tls\.certPath: the certificate CN=early is not valid before 20/],
    ['{ certPath: ok.crt, keyPath: ok.key, requireClientCert: true }', /gateway\.tls\.caPath: is missing; expected/],
    ['{ certPath: ok.crt, keyPath: ok.key, caPath: authority.crt }', /gateway\.tls\.caPath: has no effect while requireClientCert is false/],
    ['{ certPath: ok.crt, keyPath: ok.key, requireClientCert: true, caPath: expired.crt }', /gateway\.tls\.caPath: the certificate CN=old expired/],
  ];
  for (const [yaml, message] of cases) expect(load(yaml), yaml).toThrow(message);
  expect(load('{ certPath: ok.crt, keyPath: ok.key }')().config.gateway.tls).toMatchObject({ requireClientCert: false, minVersion: 'TLSv1.2' });
});
