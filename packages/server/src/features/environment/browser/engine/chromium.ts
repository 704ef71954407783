import { existsSync, realpathSync } from 'node:fs';
import { type FindProgram, findProgram } from '../../../../kernel/find-program.ts';
import { type JailSpec, jailHome, jailPath } from '../../../../kernel/jail.ts';

/** Browsers that are looked for, the first one found is used. */
export const browserPrograms = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome', 'brave-browser', 'microsoft-edge-stable'];

const install = 'install Chromium (Debian, Ubuntu, Fedora, Arch: package "chromium") or name a program of its kind in browser.program';

/** Finds the browser of the system. Returns its path, or why there is none and what helps. */
export function findBrowser(
  configured: string | undefined,
  find: FindProgram = findProgram,
): { readonly program: string } | { readonly missing: string } {
  if (configured !== undefined) return { program: configured };
  const program = browserPrograms.map((name) => find(name)).find((path) => path !== undefined);
  return program === undefined ? { missing: `No browser is installed: ${install}` } : { program };
}

/** Paths inside the jail. */
const socketFolder = '/run/browser';

/**
 * Runs inside, with the daemon's Node: forwards the only port of the jail's own network to the socket of the proxy, and what it reads
 * and writes to the pipe through which the browser is driven. The browser gets separate pipes: a write to one that a process of Node made
 * non-blocking would be cut.
 */
const bridge = `
const { createServer, connect } = require('node:net');
const [program, ...rest] = process.argv.slice(1);
const server = createServer({ allowHalfOpen: true }, (client) => {
  const proxy = connect({ path: '${socketFolder}/proxy.sock', allowHalfOpen: true });
  client.on('error', () => proxy.destroy());
  proxy.on('error', () => client.destroy());
  client.on('close', () => proxy.destroy());
  proxy.on('close', () => client.destroy());
  client.pipe(proxy).pipe(client);
});
server.listen(0, '127.0.0.1', () => {
  const proxy = '--proxy-server=http://127.0.0.1:' + server.address().port;
  const browser = require('node:child_process').spawn(program, [...rest, proxy], { stdio: ['ignore', 2, 2, 'pipe', 'pipe'] });
  process.stdin.pipe(browser.stdio[3]);
  browser.stdio[4].pipe(process.stdout);
  browser.on('error', () => process.exit(127));
  browser.on('exit', (code) => process.exit(code ?? 1));
});
`;

const flags = [
  '--headless',
  // The jail is the sandbox: it forbids the namespaces that Chromium would make one of.
  '--no-sandbox',
  '--remote-debugging-pipe',
  '--no-startup-window',
  `--user-data-dir=/tmp/profile`,
  // "localhost" goes to the proxy too, which refuses it. What the browser itself wants from its vendor goes past the proxy: into a network that has nothing.
  '--proxy-bypass-list=<-loopback>;gaia.invalid;android.clients.google.com;mtalk.google.com',
  '--gaia-url=http://gaia.invalid',
  '--disable-quic',
  '--force-webrtc-ip-handling-policy=disable_non_proxied_udp',
  '--no-first-run',
  '--no-default-browser-check',
  '--no-service-autorun',
  '--no-pings',
  '--disable-extensions',
  '--disable-component-extensions-with-background-pages',
  '--disable-component-update',
  '--disable-background-networking',
  // Pages that are watched or waited for keep their pace, and one from the history is loaded again.
  '--disable-background-timer-throttling',
  '--disable-backgrounding-occluded-windows',
  '--disable-renderer-backgrounding',
  '--disable-back-forward-cache',
  '--disable-hang-monitor',
  '--disable-prompt-on-repost',
  '--disable-client-side-phishing-detection',
  '--disable-default-apps',
  '--disable-domain-reliability',
  '--disable-sync',
  '--disable-breakpad',
  '--disable-crash-reporter',
  '--disable-gpu',
  '--disable-search-engine-choice-screen',
  '--disable-features=Translate,MediaRouter,OptimizationHints,AutofillServerCommunication,InterestFeedContentSuggestions,DialMediaRouteProvider,NetworkTimeServiceQuerying,PreconnectToSearch,AimEnabled,AimServerEligibilityEnabled,AimServerEligibilityForPrimaryAccountEnabled',
  '--metrics-recording-only',
  '--mute-audio',
  '--password-store=basic',
  '--use-mock-keychain',
  '--disk-cache-size=33554432',
  '--media-cache-size=8388608',
  '--renderer-process-limit=6',
];

export interface ChromiumSpec {
  readonly program: string;
  /** Private folder of the host with the socket of the proxy. */
  readonly socketDir: string;
  /** Folder of the host to which downloads are written; it has the same path inside. */
  readonly downloadDir: string;
  readonly memoryBytes: number;
  readonly maxDownloadBytes: number;
  readonly width: number;
  readonly height: number;
}

const day = 86_400;
const settings = '/etc/chromium.d';

/** Describes a browser in the jail: no network but the proxy, a profile in memory, nothing of the host but the system's programs. */
export function chromiumSpec({ program, socketDir, downloadDir, memoryBytes, maxDownloadBytes, width, height }: ChromiumSpec): JailSpec {
  const real = realpathSync(program);
  const folder = real.slice(0, real.lastIndexOf('/'));
  const isSystem = /^\/(?:usr|nix\/store)\//.test(real);
  return {
    argv: [`/opt/gatehouse/bin/node`, '-e', bridge, '--', program, ...flags, `--window-size=${width},${height}`],
    cwd: '/tmp',
    mounts: [
      { from: socketDir, to: socketFolder, writable: false },
      { from: downloadDir, to: downloadDir, writable: true },
      // What the start script of Debian reads.
      ...(existsSync(settings) ? [{ from: settings, to: settings, writable: false }] : []),
      ...(isSystem ? [] : [{ from: folder, to: folder, writable: false }]),
    ],
    env: { PATH: jailPath, HOME: jailHome, LANG: 'C.UTF-8', XDG_CONFIG_HOME: '/tmp/config', XDG_CACHE_HOME: '/tmp/cache' },
    network: false,
    limits: {
      memoryBytes,
      // Threads count too.
      processes: 600,
      cpuSeconds: day,
      fileBytes: Math.max(maxDownloadBytes, 268_435_456),
      openFiles: 8192,
    },
  };
}
