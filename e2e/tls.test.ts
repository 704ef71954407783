import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import https from 'node:https';
import { join } from 'node:path';
import { freePort } from '@gatehouse/testkit/free-port';
import { expect, test } from 'vitest';
import { makeAuthority, makeCertificate, writePair } from '../packages/testkit/src/certificates.ts';
import { spawnDaemon } from '../proving/lib/daemon.ts';
import { makeHome, removeHome, writeConfig } from '../proving/lib/home.ts';

const command = join(import.meta.dirname, '../dist/cli.js');

function gatehouse(args: readonly string[], env: Readonly<Record<string, string>>) {
  return new Promise<{ readonly code: number | string | null | undefined; readonly out: string; readonly err: string }>((resolve) => {
    execFile(process.execPath, [command, ...args], { env: { PATH: process.env['PATH'] ?? '', ...env } }, (error, out, err) =>
      resolve({ code: error === null ? 0 : error.code, out, err }),
    );
  });
}

test('a daemon that requires client certificates: its address, which clients connect, and the command of its owner', async () => {
  const home = await makeHome();
  const port = await freePort();
  const authority = await makeAuthority('E2E Authority');
  await writePair(home, 'server', await makeCertificate('localhost', authority));
  await writePair(home, 'authority', authority);
  await writeConfig(home, {
    models: { discover: false },
    gateway: { tls: { certPath: 'server.crt', keyPath: 'server.key', caPath: 'authority.crt', requireClientCert: true } },
  });
  const daemon = spawnDaemon({ home, port });
  try {
    await expect.poll(() => daemon.stdout()).toContain(`\nhttps://127.0.0.1:${port}\n`);
    const health = (pair: object) =>
      new Promise<number | undefined>((resolve, reject) => {
        https
          .get({ host: '127.0.0.1', port, path: '/health?ready', ca: authority.cert, agent: false, ...pair }, (incoming) => {
            incoming.resume();
            resolve(incoming.statusCode);
          })
          .on('error', reject);
      });
    await expect(health({})).rejects.toThrow();
    expect(await health(await makeCertificate('somebody', authority))).toBe(200);
    // The command uses the owner-only socket, which requires no certificate.
    expect(await gatehouse(['status', '--home', home], {})).toMatchObject({ code: 0, out: expect.stringContaining(`https://127.0.0.1:${port}`) });
  } finally {
    await daemon.stop();
    await removeHome(home);
  }
});

test('the command from elsewhere: over https with the authority of NODE_EXTRA_CA_CERTS, and not without', async () => {
  const home = await makeHome();
  const port = await freePort();
  const authority = await makeAuthority('E2E Authority');
  await writePair(home, 'server', await makeCertificate('localhost', authority));
  await writePair(home, 'authority', authority);
  await writeConfig(home, { models: { discover: false }, gateway: { tls: { certPath: 'server.crt', keyPath: 'server.key' } } });
  const daemon = spawnDaemon({ home, port });
  try {
    await expect.poll(() => daemon.stdout()).toContain(`\nhttps://127.0.0.1:${port}\n`);
    const tokenFile = join(home, 'copied-token');
    await writeFile(tokenFile, daemon.token, { mode: 0o600 });
    const args = ['call', 'system.ping', '--output', 'json', '--url', `https://localhost:${port}`, '--token-file', tokenFile];
    expect(await gatehouse(args, { NODE_EXTRA_CA_CERTS: join(home, 'authority.crt') })).toMatchObject({
      code: 0,
      out: expect.stringContaining('"pong":true'),
    });
    expect(await gatehouse(args, {})).toMatchObject({ code: 3, err: expect.stringMatching(/certificate/) });
  } finally {
    await daemon.stop();
    await removeHome(home);
  }
});
