import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { freePort } from '@gatehouse/testkit/free-port';
import { expect, test } from 'vitest';
import { spawnDaemon } from '../proving/lib/daemon.ts';
import { makeHome, removeHome, writeConfig } from '../proving/lib/home.ts';

test('notifies a service manager when the daemon is ready and when it stops', async () => {
  const home = await makeHome();
  try {
    const port = await freePort();
    const bin = join(home, 'bin');
    const log = join(home, 'notified');
    await mkdir(bin);
    // Replaces systemd-notify, which needs a running systemd.
    await writeFile(join(bin, 'systemd-notify'), `#!/bin/sh\necho "$1 $NOTIFY_SOCKET $GATEHOUSE_TOKEN" >> ${log}\n`);
    await chmod(join(bin, 'systemd-notify'), 0o755);
    await writeConfig(home, { models: { discover: false } });
    const daemon = spawnDaemon({ home, port, env: { PATH: `${bin}${delimiter}${process.env['PATH'] ?? ''}`, NOTIFY_SOCKET: '/run/notify' } });
    const heard = () => readFile(log, 'utf8').catch(() => '');
    await expect.poll(heard).toBe('READY=1 /run/notify \n');
    expect((await fetch(`http://127.0.0.1:${port}/health?ready`)).status).toBe(200);
    await daemon.stop();
    await expect.poll(heard).toBe('READY=1 /run/notify \nSTOPPING=1 /run/notify \n');
  } finally {
    await removeHome(home);
  }
});
