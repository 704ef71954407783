import { createServer } from 'node:http';
import { servePages } from '@gatehouse/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findCommand } from '../../../../../../../tools/system-packages.mjs';
import { openBrowsers } from '../testing/open-browsers.ts';

const missing = ['bwrap', 'chromium'].filter((name) => findCommand(name) === undefined);

/** Ways in which a page makes the browser send a request, each to its own path of `base`. */
function waysTo(base: string, own: string): readonly string[] {
  const { port } = new URL(base);
  const to = (name: string) => `${base}/${name}`;
  const add = (html: string) => `document.body.insertAdjacentHTML('beforeend', ${JSON.stringify(html)})`;
  const element = (tag: string, attributes: string) => `Object.assign(document.body.appendChild(document.createElement('${tag}')), ${attributes})`;
  return [
    `fetch('${to('fetch')}')`,
    `fetch('${to('no-cors')}', { mode: 'no-cors' })`,
    `fetch('${to('post')}', { method: 'POST', mode: 'no-cors', body: 'x' })`,
    `fetch('${to('keepalive')}', { keepalive: true, mode: 'no-cors' })`,
    `new XMLHttpRequest().open('GET', '${to('xhr')}') ?? 0; { const x = new XMLHttpRequest(); x.open('GET', '${to('xhr')}'); x.send(); }`,
    `navigator.sendBeacon('${to('beacon')}', 'x')`,
    `new EventSource('${to('events')}')`,
    `new WebSocket('${to('socket').replace('http', 'ws')}')`,
    `new Image().src = '${to('image')}'`,
    add(`<img srcset="${to('srcset')} 1x">`),
    add(`<picture><source srcset="${to('picture')}"><img></picture>`),
    add(`<svg><image href="${to('svg')}"></image></svg>`),
    add(`<svg><use href="${to('use')}#a"></use></svg>`),
    add(`<iframe src="${to('frame')}"></iframe>`),
    add(`<object data="${to('object')}"></object>`),
    add(`<embed src="${to('embed')}">`),
    add(`<video src="${to('video')}" autoplay muted></video>`),
    add(`<audio src="${to('audio')}" preload="auto"></audio>`),
    add(`<video poster="${to('poster')}"></video>`),
    add(`<video><track default src="${to('track')}"></video>`),
    add(`<input type="image" src="${to('input')}">`),
    element('script', `{ src: '${to('script')}' }`),
    element('script', `{ type: 'module', textContent: "import '${to('module')}'" }`),
    element('link', `{ rel: 'stylesheet', href: '${to('style')}' }`),
    element('link', `{ rel: 'prefetch', href: '${to('prefetch')}' }`),
    element('link', `{ rel: 'preload', as: 'script', href: '${to('preload')}' }`),
    element('link', `{ rel: 'modulepreload', href: '${to('modulepreload')}' }`),
    element('link', `{ rel: 'icon', href: '${to('icon')}' }`),
    element('link', `{ rel: 'manifest', href: '${to('manifest')}' }`),
    element('style', `{ textContent: "@import '${to('import')}'" }`),
    element('style', `{ textContent: "body { background: url(${to('background')}) }" }`),
    element('style', `{ textContent: "@font-face { font-family: f; src: url(${to('font')}) } body { font-family: f }" }`),
    `new Worker(URL.createObjectURL(new Blob(["importScripts('${to('worker')}')"])))`,
    `new Worker(URL.createObjectURL(new Blob(["fetch('${to('worker-fetch')}', { mode: 'no-cors' })"])))`,
    `import('${to('dynamic')}')`,
    `new Audio('${to('new-audio')}').load()`,
    add(`<iframe srcdoc="<img src='${to('srcdoc')}'>"></iframe>`),
    add(`<iframe src="${own}/redirect?to=${encodeURIComponent(to('redirected'))}"></iframe>`),
    `fetch('${own}/redirect?to=${encodeURIComponent(to('fetch-redirected'))}', { mode: 'no-cors' })`,
    `{ const f = ${element('form', `{ action: '${to('form')}', method: 'POST', target: 'formed' }`)}; ${add('<iframe name="formed"></iframe>')}; f.submit() }`,
    `{ const a = ${element('a', `{ href: '${own}/empty', ping: '${to('ping')}', target: 'pinged' }`)}; ${add('<iframe name="pinged"></iframe>')}; a.click() }`,
    ...['127.1', '2130706433', '0177.0.0.1', '0x7f.1', '[::1]', '[::ffff:127.0.0.1]', '0.0.0.0', 'localhost', 'a.localhost', 'moves.test'].map(
      (host, index) => `fetch('http://${host}:${port}/spelled-${index}', { mode: 'no-cors' })`,
    ),
    `window.open('${to('window')}')`,
  ];
}

describe.skipIf(missing.length > 0)(
  `requests of pages to private addresses${missing.length > 0 ? ` (skipped: ${missing.join(', ')} missing)` : ''}`,
  { timeout: 120_000 },
  () => {
    const reached: string[] = [];
    const router = createServer((request, response) => {
      reached.push(new URL(request.url ?? '/', 'http://any').pathname);
      response.writeHead(200, { 'access-control-allow-origin': '*' }).end('secret');
    });
    let base = '';
    beforeAll(async () => {
      await new Promise<void>((resolve) => router.listen(0, '127.0.0.1', resolve));
      const address = router.address();
      base = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
      router.on('connect', (_, socket) => socket.destroy());
      router.on('upgrade', (request, socket) => {
        reached.push(new URL(request.url ?? '/', 'http://any').pathname);
        socket.destroy();
      });
    });
    afterAll(() => {
      router.closeAllConnections();
      router.close();
    });

    /** Returns the ways that reached the private server. */
    async function attack(allowed: readonly string[]): Promise<number> {
      reached.length = 0;
      await using pages = await servePages({
        '/': '<title>Attack</title><body>',
        '/empty': ' ',
        '/redirect': (request, response) =>
          void response.writeHead(302, { location: new URL(request.url ?? '', 'http://any').searchParams.get('to') ?? '' }).end(),
      });
      await using browsers = await openBrowsers({
        dial: {
          ...pages.dial,
          resolve: async (name) => (name === 'moves.test' ? ['93.184.215.14', '127.0.0.1'] : pages.dial.resolve(name)),
          allowAddresses: [...pages.dial.allowAddresses, ...allowed],
        },
      });
      const session = await browsers.pool.start('default');
      const { signal } = browsers.context;
      await session.navigate(undefined, pages.url('/'), signal);
      const ways = waysTo(base, pages.url(''));
      expect(ways.length).toBeGreaterThanOrEqual(40);
      const expression = `(${JSON.stringify(ways)}).map((way) => { try { return (0, eval)(way), 1 } catch (error) { return String(error) } })`;
      const { value = '' } = await session.act(undefined, { kind: 'evaluate', expression }, browsers.context);
      expect(value).toBe(JSON.stringify(ways.map(() => 1)));
      await session.act(undefined, { kind: 'wait', timeMs: 1_500 }, browsers.context);
      return new Set(reached).size;
    }

    it('reach none, in more than forty ways', async () => {
      expect(await attack([])).toBe(0);
    });

    it('would be noticed: a proxy that allows the address lets most of them through', async () => {
      expect(await attack([new URL(base).host])).toBeGreaterThan(30);
    });
  },
);
