import { AppError } from '../../kernel/app-error.ts';
import type { Log } from '../../kernel/log.ts';
import type { GatewayConfig } from '../config.ts';
import type { HttpCall } from '../http-call.ts';
import { sendEmpty } from '../reply.ts';
import { dashboardDir, type DashboardFile, type DashboardFiles, type Encoding, readDashboard } from './dashboard-files.ts';

export interface DashboardRoutes {
  /** `GET /`. */
  readonly page: (call: HttpCall) => void;
  /** `GET /assets/*file`. */
  readonly asset: (call: HttpCall) => void;
  /** Answers a dashboard page that was opened by its address (`/chat`, `/events` …); returns false for any other call. */
  readonly openLink: (call: HttpCall) => boolean;
}

/**
 * The page may run its own scripts and call its own server, and nothing else: no other host, no form, no
 * inline script. It holds a token, so every way to leak it is closed.
 */
const pageHeaders: Readonly<Record<string, string>> = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data: blob:",
    // Recordings are played from their bytes, because a player can't send the token.
    "media-src 'self' blob:",
    "font-src 'self'",
    "manifest-src 'self'",
    "connect-src 'self'",
    // Pages and diagrams of models, see dashboard-frame.ts.
    "frame-src 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
  ].join('; '),
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), display-capture=(), geolocation=(), microphone=(self), payment=(), usb=()',
  'referrer-policy': 'no-referrer',
  'x-frame-options': 'DENY',
};

/** Route families for programs, and files such as `/favicon.ico`: a missing one stays missing, without a page as a fallback. */
const programPath = /^\/(api|v1|rpc|ws|mcp|media|hooks|oauth|assets|frame|health|metrics)(\/|$)|^\/[^/.]*\.[^/]*$/i;

/** Serves the dashboard (decisions §4; http-gateway.md §4.7); reads it at the first request. */
export function createDashboardRoutes(deps: { readonly web: GatewayConfig['web']; readonly homeDir: string; readonly log: Log }): DashboardRoutes {
  let files: DashboardFiles | undefined;

  /** Once read, a build is served as it was: one that replaces it on disk takes effect at the next start. */
  function load(): DashboardFiles | undefined {
    if (files !== undefined) return files;
    const dir = dashboardDir(deps.web, deps.homeDir);
    if (dir === undefined) return undefined;
    try {
      files = readDashboard(dir);
    } catch (error) {
      deps.log.error({ err: error, dir }, 'The dashboard cannot be read');
    }
    return files;
  }

  function page(call: HttpCall): void {
    const built = load();
    if (built === undefined)
      throw new AppError('not_found', 'There is no dashboard here: `npm run build` makes it, gateway.web.distPath names another');
    for (const [name, value] of Object.entries(pageHeaders)) call.setHeader(name, value);
    send(call, built.index, 'no-cache');
  }

  return {
    page,
    asset(call) {
      const file = load()?.assets.get(call.params['file'] ?? '');
      if (file === undefined) throw new AppError('not_found', 'No such file of the dashboard');
      call.setHeader('cross-origin-resource-policy', 'same-origin');
      send(call, file, 'public, max-age=31536000, immutable');
    },
    openLink(call) {
      const { method, headers } = call.incoming;
      if (method !== 'GET' && method !== 'HEAD') return false;
      if (programPath.test(call.path) || !(headers.accept ?? '').includes('text/html') || load() === undefined) return false;
      page(call);
      return true;
    },
  };
}

function send(call: HttpCall, file: DashboardFile, cacheControl: string): void {
  const encoding = encodingFor(call.incoming.headers['accept-encoding'], file);
  // One tag per encoding, because the bytes differ (RFC 9110 §8.8.3.3).
  const etag = `"${file.etag}${encoding === 'identity' ? '' : `-${encoding}`}"`;
  call.setHeader('cache-control', cacheControl);
  call.setHeader('etag', etag);
  call.vary('accept-encoding');
  if (isKnown(call.incoming.headers['if-none-match'], etag)) return sendEmpty(call, 304);
  const body = file.bodies[encoding] ?? file.bodies.identity;
  call.setHeader('content-type', file.contentType);
  call.setHeader('content-length', String(body.length));
  if (encoding !== 'identity') call.setHeader('content-encoding', encoding);
  call.writeHead(200);
  // Node omits the body of a response to HEAD.
  call.outgoing.end(body);
}

function isKnown(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  return ifNoneMatch.split(',').some((one) => one.trim().replace(/^W\//, '') === etag || one.trim() === '*');
}

/** Returns the smallest form that the client accepts; a weight of zero refuses one. */
function encodingFor(accept: string | undefined, file: DashboardFile): Encoding {
  const accepted = new Set(
    (accept ?? '')
      .toLowerCase()
      .split(',')
      .map((one) => one.split(';').map((part) => part.trim()))
      .filter(([, weight]) => weight === undefined || !/^q=0(\.0*)?$/.test(weight))
      .map(([name]) => name),
  );
  for (const encoding of ['br', 'gzip'] as const) if (accepted.has(encoding) && file.bodies[encoding] !== undefined) return encoding;
  return 'identity';
}
