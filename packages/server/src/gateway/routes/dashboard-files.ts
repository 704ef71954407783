import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { GatewayConfig } from '../config.ts';

/** How a body is compressed; `identity` is uncompressed. */
export type Encoding = 'br' | 'gzip' | 'identity';

/** One file of a build, as served. */
export interface DashboardFile {
  readonly contentType: string;
  readonly etag: string;
  readonly bodies: Readonly<Partial<Record<Encoding, Buffer>>> & { readonly identity: Buffer };
}

/** A build of the dashboard: the page and what it loads, by name. */
export interface DashboardFiles {
  readonly index: DashboardFile;
  readonly assets: ReadonlyMap<string, DashboardFile>;
}

/** A build is a few dozen files of a few hundred kilobytes; another folder is refused rather than read whole. */
const maxFiles = 500;
const maxBytes = 32 * 1024 * 1024;

const contentTypes: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  ico: 'image/x-icon',
  js: 'text/javascript; charset=utf-8',
  json: 'application/json; charset=utf-8',
  png: 'image/png',
  svg: 'image/svg+xml',
  txt: 'text/plain; charset=utf-8',
  webmanifest: 'application/manifest+json',
  webp: 'image/webp',
  woff2: 'font/woff2',
};

/** Returns the folder of the build that is served: the configured one, else the one next to a bundled daemon; undefined when there is none. */
export function dashboardDir(web: GatewayConfig['web'], homeDir: string): string | undefined {
  const bundled = import.meta.filename.endsWith('.js') ? join(import.meta.dirname, 'dashboard') : undefined;
  const named = web.distPath === undefined ? bundled : resolve(homeDir, web.distPath);
  const dir = web.enabled ? named : undefined;
  return dir !== undefined && existsSync(join(dir, 'index.html')) ? dir : undefined;
}

/**
 * Reads a whole build: `index.html` and the files of `assets/`, each with its compressed forms (`.br`, `.gz`) if there are
 * any. Requests are looked up among these names only, so no request is ever joined to a path.
 * Throws when the folder holds no build.
 */
export function readDashboard(dir: string): DashboardFiles {
  const folder = join(dir, 'assets');
  const names = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => entry.name);
  if (names.length > maxFiles) throw new Error(`${folder} holds ${names.length} files, more than the ${maxFiles} of a build of the dashboard`);
  let left = maxBytes;
  const read = (path: string): Buffer => {
    const content = readFileSync(path);
    left -= content.length;
    if (left < 0) throw new Error(`${dir} holds more than the ${maxBytes} bytes of a build of the dashboard`);
    return content;
  };
  const file = (at: string, name: string, siblings: ReadonlySet<string>): DashboardFile => {
    const identity = read(join(at, name));
    return {
      contentType: contentTypes[name.slice(name.lastIndexOf('.') + 1)] ?? 'application/octet-stream',
      etag: createHash('sha256').update(identity).digest('base64url').slice(0, 22),
      bodies: {
        identity,
        ...(siblings.has(`${name}.br`) && { br: read(join(at, `${name}.br`)) }),
        ...(siblings.has(`${name}.gz`) && { gzip: read(join(at, `${name}.gz`)) }),
      },
    };
  };
  const all = new Set(names);
  const index = file(dir, 'index.html', new Set(readdirSync(dir)));
  return {
    index,
    assets: new Map(names.filter((name) => !/\.(br|gz)$/.test(name)).map((name) => [name, file(folder, name, all)])),
  };
}
