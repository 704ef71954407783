import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { BrowserAct } from '@gatehouse/contract';
import { servePages } from '@gatehouse/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../../../kernel/clock.ts';
import { findCommand } from '../../../../../../../tools/system-packages.mjs';
import { allClean } from '../../workspace/file-tools/testing.ts';
import { openBrowsers } from '../testing/open-browsers.ts';
import type { RunningBrowser } from './session.ts';

const missing = ['bwrap', 'chromium'].filter((name) => findCommand(name) === undefined);
const never = new AbortController().signal;

const form = `<title>Form</title><h1>Order</h1>
<form action="/done"><label>Name <input name="name"></label><label>Pass <input name="pass"></label>
<label><input type="checkbox" name="gift"> Gift</label>
<label>Size <select name="size"><option>small</option><option>large</option></select></label>
<label>File <input type="file" name="file"></label><button>Send</button></form>
<button onclick="document.title=confirm('Sure?')?'yes':'no'">Ask</button>
<a href="/download">Get</a><a href="/cut">Break off</a><a href="/done" target="_blank">New tab</a>
<iframe srcdoc="<button onclick='parent.document.title=&quot;framed&quot;'>Inside</button>"></iframe>
<div id="host"></div><script>
const root = document.getElementById('host').attachShadow({mode:'open'});
root.innerHTML='<button>Shadow</button>'; root.querySelector('button').onclick=()=>{document.title='shadowed'};
document.querySelector('[name=file]').onchange=(e)=>e.target.files[0].text().then((t)=>{document.title=t});
console.warn('careful'); localStorage.setItem('visits', '1'); document.cookie='seen=1; max-age=1000';
</script>`;

/** Shows what is typed in many elements; widths do not depend on the letters, and no caret blinks. */
const echo = `<title>Echo</title><style>*{font:16px monospace;caret-color:transparent;transition:opacity 2s} #made::after{content:attr(data-made)}</style>
<label>Secret <input id="from"></label> <input id="field"> <textarea id="area"></textarea> <input id="hint"><input type="button" id="button" value="nothing yet">
<select><option id="option">nothing yet</option></select><div>You typed <span id="text">nothing</span>, <a id="link">link</a><b id="made">!</b></div>
<svg width="300" height="30"><text y="20" id="drawn">-</text></svg><div id="open"></div><div id="closed"></div>
<iframe height="60" srcdoc="<p style='font:16px monospace'>-"></iframe><h1>Always here</h1>
<script>
const roots = [document.getElementById('open').attachShadow({mode:'open'}), document.getElementById('closed').attachShadow({mode:'closed'})];
from.oninput = () => {
  const { value } = from;
  document.title = value;
  for (const each of [text, option, drawn, document.querySelector('iframe').contentDocument.querySelector('p'), ...roots]) each.textContent = 'in ' + value + ' words';
  field.value = area.value = button.value = hint.placeholder = made.dataset.made = value;
  link.href = '/?q=' + encodeURIComponent(value); link.textContent = link.href;
};
</script>`;

/** A frame of another site, which Chromium runs in a separate process. */
const framed = (url: string) =>
  `<title>Frames</title><body style="margin:0"><iframe width="900" height="500" src="${url}"></iframe><h1>Always here</h1>`;

/** Notes what is done to it. */
const kinds = `<title>Kinds</title><button id="button">Push</button><input aria-label="Field"><select aria-label="Size"><option>small<option>large</select>
<div role="button" aria-label="Piece" draggable="true">piece</div><div role="button" aria-label="Place">place</div><p id="late">soon</p>
<p style="margin-top:2000px"><button>Below</button></p><script>
const done = [];
for (const type of ['dblclick', 'contextmenu', 'mouseover', 'drop', 'change', 'keydown'])
  addEventListener(type, (event) => { done.push(type + ' ' + (event.key ?? event.target.value ?? event.target.ariaLabel ?? '')); event.preventDefault(); });
addEventListener('dragover', (event) => event.preventDefault());
addEventListener('resize', () => done.push('resize ' + innerWidth + 'x' + innerHeight));
button.onclick = (event) => { done.push('click ' + event.shiftKey); setTimeout(() => { late.textContent = 'there'; location.hash = 'late' }, 50) };
</script>`;

describe.skipIf(missing.length > 0)(
  `a browser of an agent${missing.length > 0 ? ` (skipped: ${missing.join(', ')} missing)` : ''}`,
  { timeout: 120_000 },
  () => {
    let pages: Awaited<ReturnType<typeof servePages>>;
    let browsers: Awaited<ReturnType<typeof openBrowsers>>;
    let session: RunningBrowser;
    const endless = Promise.withResolvers<void>();
    /** Names that the browser wanted to reach. */
    const asked = new Set<string>();
    /** Whether the disk of the workspace is full. */
    let isFull = false;
    const act = (request: BrowserAct, tabId?: string) => session.act(tabId, request, browsers.context);
    const visit = (path: string) => session.navigate(undefined, pages.url(path), never);
    async function refOf(name: string, tabId?: string): Promise<string> {
      const { refs, snapshot } = await session.snapshot(tabId, {}, never);
      const found = Object.entries(refs).find(([, ref]) => ref.name === name);
      if (found === undefined) throw new Error(`no ${name} in ${snapshot}`);
      return found[0];
    }
    const title = async () => (await session.tabs()).find(({ active }) => active)?.title;

    beforeAll(async () => {
      pages = await servePages({
        '/': form,
        '/done': '<title>Done</title><p>Thank you',
        '/kinds': kinds,
        '/private': (_, response) => void response.writeHead(302, { location: `http://router.internal:${pages.port}/` }).end(),
        '/slow': () => {},
        '/download': (_, response) =>
          void response
            .writeHead(200, { 'content-type': 'application/octet-stream', 'content-disposition': 'attachment; filename="../a b.bin"' })
            .end('12345'),
        '/cut': (_, response) => {
          response.writeHead(200, { 'content-disposition': 'attachment; filename="<cut>"', 'content-length': '99' }).write('12345');
          setTimeout(() => response.destroy(), 50);
        },
        '/endless': '<title>Endless</title>',
        '/endless-file': (_, response) => {
          response
            .writeHead(200, {
              'content-type': 'application/zip',
              'content-disposition': 'attachment; filename="endless.zip"',
              'content-length': '99',
            })
            .write('12345');
          endless.resolve();
        },
        '/loop': '<title>Loop</title><button onclick="for(;;);">Hang</button>',
        '/hungry': `<title>Hungry</title><button onclick="const kept = []; for (;;) kept.push(new Uint8Array(2e7).fill(1))">Eat</button>`,
        '/secret': '<title>In</title><label>Pass <input id="p"></label>',
        '/echo': echo,
        '/outer': (_, response) => void response.writeHead(200, { 'content-type': 'text/html' }).end(framed(pages.url('/middle', 'middle.test'))),
        '/middle': (_, response) => void response.writeHead(200, { 'content-type': 'text/html' }).end(framed(pages.url('/echo', 'inner.test'))),
        '/big': `<title>Big</title>${'<p><button>Item</button>'.repeat(1000)}`,
      });
      browsers = await openBrowsers({
        dial: {
          ...pages.dial,
          resolve(name) {
            asked.add(name);
            return pages.dial.resolve(name);
          },
        },
        config: {
          maxTabs: 3,
          secrets: Object.fromEntries(['SHOP', 'BANK', 'PIN'].map((name) => [name, { origins: [pages.url(''), pages.url('', 'inner.test')] }])),
          timeoutMs: 4_000,
        },
        capacity: {
          async assertCapacity() {
            if (isFull) throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
          },
        },
        secret: (name) => ({ SHOP: 'hunter2+hunter2', BANK: 'Wxyzab7+Wxyzab7', PIN: '0071' })[name],
      });
      mkdirSync(browsers.context.workspaceDir, { recursive: true });
      session = await browsers.pool.start('default');
    });
    afterAll(async () => {
      await browsers?.[Symbol.asyncDispose]();
      await pages?.[Symbol.asyncDispose]();
    });

    it('fills a form, with frames and shadow roots, and sees what follows', async () => {
      await visit('/');
      const { refs, snapshot, stats } = await session.snapshot(undefined, { interactive: true }, never);
      expect(snapshot).toContain('textbox "Name"');
      expect(snapshot).toContain('button "Inside"');
      expect(stats.interactive).toBe(Object.keys(refs).length);
      const ref = (name: string) => Object.entries(refs).find(([, each]) => each.name === name)?.[0] ?? '';
      expect(await act({ kind: 'click', ref: ref('Inside') })).toMatchObject({ ok: true, action: 'click' });
      expect(await title()).toBe('framed');
      await act({ kind: 'click', ref: `@${ref('Shadow')}` });
      expect(await title()).toBe('shadowed');
      await act({
        kind: 'fill',
        fields: [
          { ref: ref('Name'), type: 'text', value: 'Eve' },
          { ref: ref('Gift'), type: 'checkbox', value: true },
          { ref: ref('Size'), type: 'select', value: 'large' },
        ],
      });
      expect(await act({ kind: 'click', ref: ref('Send') })).toMatchObject({ ok: true });
      await act({ kind: 'wait', text: 'Thank you' });
      const { url } = await session.snapshot(undefined, {}, never);
      expect(new URL(url).searchParams.toString()).toBe('name=Eve&pass=&gift=on&size=large&file=');
      expect(await act({ kind: 'click', ref: ref('Send'), timeoutMs: 500 })).toMatchObject({ ok: false, error: expect.stringContaining('snapshot') });
    });

    it('does every kind of step', async () => {
      await visit('/done');
      await visit('/kinds');
      const { refs } = await session.snapshot(undefined, {}, never);
      const ref = (name: string) => Object.entries(refs).find(([, each]) => each.name === name)?.[0] ?? '';
      const value = async (expression: string) => (await act({ kind: 'evaluate', expression })).value;
      const steps: readonly BrowserAct[] = [
        { kind: 'click', ref: ref('Push'), modifiers: ['Shift'] },
        { kind: 'wait', text: 'there', textGone: 'soon', selector: '#late', url: '#late', loadState: 'load' },
        { kind: 'click', ref: ref('Piece'), doubleClick: true },
        { kind: 'click', ref: ref('Place'), button: 'right' },
        { kind: 'hover', ref: ref('Piece') },
        { kind: 'drag', startRef: ref('Piece'), endRef: ref('Place') },
        { kind: 'select', ref: ref('Size'), values: ['large'] },
        { kind: 'type', ref: ref('Field'), text: 'ab', slowly: true, submit: true },
        { kind: 'press', ref: ref('Field'), key: 'End' },
        { kind: 'resize', width: 900, height: 700 },
      ];
      for (const step of steps) expect(await act(step)).toMatchObject({ ok: true, action: step.kind });
      const seen =
        'click true|dblclick Piece|contextmenu Place|mouseover Piece|drop Place|change large|keydown a,keydown b,keydown Enter,|keydown End|resize 900x700';
      // The page hears of its size with the next frame.
      for (const one of seen.split('|')) await expect.poll(() => value('done.join()')).toContain(one);
      expect(await value('scrollY')).toBe('0');
      await act({ kind: 'scroll', ref: ref('Below') });
      const far = Number(await value('scrollY'));
      expect(far).toBeGreaterThan(1000);
      await act({ kind: 'scroll', dy: -500 });
      await expect.poll(async () => Number(await value('scrollY'))).toBeLessThan(far);
      for (const [kind, path] of [
        ['reload', '/kinds#late'],
        ['back', '/kinds'],
        ['back', '/done'],
        ['forward', '/kinds'],
      ] as const)
        expect(await act({ kind })).toMatchObject({ ok: true, url: pages.url(path) });
      const { tabId } = await session.open(undefined, never);
      expect(await act({ kind: 'close' }, tabId)).toMatchObject({ ok: true });
      expect(await session.tabs()).toHaveLength(1);
      await act({ kind: 'resize', width: 1280, height: 720 });
    });

    it('stops at a dialog until it is answered', async () => {
      await visit('/');
      const ask = await refOf('Ask');
      expect(await act({ kind: 'click', ref: ask })).toMatchObject({ ok: true, dialog: { type: 'confirm', message: 'Sure?' } });
      expect(await act({ kind: 'click', ref: ask })).toMatchObject({ ok: false, dialog: { type: 'confirm' } });
      await expect(session.screenshot(undefined, {}, never)).rejects.toMatchObject({ code: 'conflict' });
      expect(await act({ kind: 'dialog', accept: true })).toMatchObject({ ok: true });
      await act({ kind: 'wait', timeMs: 50 });
      expect(await title()).toBe('yes');
    });

    it('uploads files of the workspace, and keeps downloads there under a plain name', async () => {
      writeFileSync(join(browsers.context.workspaceDir, 'note.txt'), 'from the workspace');
      await visit('/');
      expect(await act({ kind: 'upload', ref: await refOf('File'), paths: ['note.txt'] })).toMatchObject({ ok: true });
      await act({ kind: 'wait', timeMs: 100 });
      expect(await title()).toBe('from the workspace');
      await expect(act({ kind: 'upload', ref: 'e1', paths: ['../x'] })).rejects.toMatchObject({ code: 'not_found' });
      const get = await refOf('Get');
      const { downloads } = await act({ kind: 'click', ref: get });
      expect(downloads).toEqual([{ name: '_a b.bin', path: 'downloads/_a b.bin', bytes: 5 }]);
      expect((await act({ kind: 'click', ref: get })).downloads?.[0]?.path).toBe('downloads/_a b-2.bin');
      expect(readFileSync(join(browsers.context.workspaceDir, 'downloads/_a b.bin'), 'utf8')).toBe('12345');
      isFull = true;
      expect((await act({ kind: 'click', ref: get })).downloads).toEqual([
        { name: '_a b.bin', bytes: 0, error: expect.stringMatching(/^The disk is full/) },
      ]);
      isFull = false;
      expect((await act({ kind: 'click', ref: await refOf('Break off') })).downloads).toEqual([
        { name: '_cut_', bytes: 0, error: expect.stringMatching(/did not finish.* [\d.]+ MB are free/) },
      ]);
      // Something else has the name of the folder.
      renameSync(join(browsers.context.workspaceDir, 'downloads'), join(browsers.context.workspaceDir, 'away'));
      writeFileSync(join(browsers.context.workspaceDir, 'downloads'), '');
      expect(await act({ kind: 'click', ref: get })).toMatchObject({
        ok: true,
        downloads: [{ name: '_a b.bin', bytes: 0, error: expect.any(String) }],
      });
      rmSync(join(browsers.context.workspaceDir, 'downloads'));
      expect((await act({ kind: 'click', ref: get })).downloads?.[0]?.path).toBe('downloads/_a b.bin');
      const all = `for (let n = 0; n < 30; n += 1) Object.assign(document.createElement('a'), { href: '/download?' + n, download: '' }).click()`;
      const many = await act({ kind: 'evaluate', expression: all });
      await act({ kind: 'wait', timeMs: 500 });
      expect(many.downloads?.length ?? 0).toBeLessThanOrEqual(10);
      expect(readdirSync(join(browsers.base, 'browser/default/downloads')).length).toBeLessThanOrEqual(10);
    });

    it('keeps downloads of the same name that end at the same time, and waits for none of a browser that is gone', async () => {
      const marks = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const [begun, released] = marks;
      let isFirst = true;
      // A wait until a time never ends.
      const frozen = { ...systemClock, now: () => systemClock.now(), monotonic: () => 0 };
      await using own = await openBrowsers({
        dial: pages.dial,
        processClock: frozen,
        taints: {
          ...allClean,
          async mark() {
            if (!isFirst) return;
            isFirst = false;
            begun?.resolve();
            await released?.promise;
          },
        },
      });
      mkdirSync(own.context.workspaceDir, { recursive: true });
      // Another agent's may start at the same time.
      const [mine, other] = await Promise.all(['default', 'other'].map((id) => own.pool.start(id)));
      if (mine === undefined || other === undefined) throw new Error('no browser');
      expect(await other.navigate(undefined, pages.url('/done'), never)).toMatchObject({ title: 'Done' });
      await mine.navigate(undefined, pages.url('/endless'), never);
      const get = (path: string) =>
        mine.act(undefined, { kind: 'evaluate', expression: `Object.assign(document.createElement('a'), { href: '${path}' }).click()` }, own.context);
      const first = get('/download');
      await begun?.promise;
      const second = get('/download');
      await Promise.race([second, new Promise((resolve) => setTimeout(resolve, 1_500))]);
      released?.resolve();
      const paths = (await Promise.all([first, second])).flatMap(({ downloads = [] }) => downloads.map(({ path }) => path));
      expect(paths.toSorted()).toEqual(['downloads/_a b-2.bin', 'downloads/_a b.bin']);
      const waiting = get('/endless-file').catch((error: unknown) => error);
      await endless.promise;
      // By then the step waits for the download.
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      await own.pool.stop('default');
      expect(await waiting).toMatchObject({ code: 'unavailable', message: expect.stringContaining('its downloads are not kept') });
    });

    it('reaches no private address: not by name, redirect, page or scheme', async () => {
      const open = (url: string) => session.navigate(undefined, url, never);
      for (const url of ['http://127.0.0.1:8080/', 'http://localhost/', 'http://[::1]/', 'http://169.254.169.254/', 'http://router.internal/'])
        await expect(open(url)).rejects.toMatchObject({ code: 'denied' });
      for (const url of ['file:///etc/passwd', 'chrome://version', 'view-source:http://shop.test/', 'javascript:1', 'http://a:b@shop.test/'])
        await expect(open(url)).rejects.toMatchObject({ code: 'denied' });
      await visit('/private').catch(() => {});
      await visit('/done');
      const asked = pages.requests.length;
      const reached = `Promise.all(['http://127.0.0.1:${pages.port + 1}/','http://router.internal/','http://[::1]:${pages.port}/'].map((u) => fetch(u,{mode:'no-cors'}).then((r) => r.type === 'opaque' ? 'answered' : r.type, () => 'failed')))`;
      const { value } = await act({ kind: 'evaluate', expression: reached });
      // A refusal of the proxy is an answer that a page cannot read.
      expect(value).toBe('["answered","answered","answered"]');
      expect(pages.requests.length).toBe(asked);
      const socket = `new Promise((done) => { const s = new WebSocket('ws://router.internal/'); s.onerror = () => done('refused'); s.onopen = () => done('open') })`;
      expect((await act({ kind: 'evaluate', expression: socket })).value).toBe('"refused"');
    });

    it('has no extensions and no sync: not in its processes, its profile or what it reaches', async () => {
      await visit('/done');
      const [main = 0] = chromiums(browsers.base);
      const commands = chromiums(browsers.base).map((pid) => readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0'));
      const flags = ['--disable-extensions', '--disable-component-extensions-with-background-pages', '--disable-sync'];
      expect(commands.find((each) => each.includes('--remote-debugging-pipe'))).toEqual(expect.arrayContaining(flags));
      // The start script of Debian names those of the system, which are none.
      expect(commands.flat().filter((each) => /^--(?:extension-process|load-extension=.)/.test(each))).toEqual([]);
      const profile = `/proc/${main}/root/tmp/profile`;
      expect(readdirSync(profile)).toContain('Local State');
      expect(readdirSync(`${profile}/Default`)).not.toContain('Extensions');
      // It asks for nothing but the pages of these tests.
      expect([...asked].filter((name) => !/(?:\.test|\.internal|^localhost)$/.test(name))).toEqual([]);
      const { value } = await act({ kind: 'evaluate', expression: 'typeof globalThis.chrome?.runtime' });
      expect(value).toBe('"undefined"');
    });

    it('types a stored secret only at its origins, where pictures do not show it', async () => {
      await visit('/secret');
      expect(await act({ kind: 'type', ref: await refOf('Pass'), secret: 'SHOP' })).toMatchObject({ ok: true });
      const seen = await act({ kind: 'evaluate', expression: `[p.value.length, p.style.webkitTextSecurity].join()` });
      expect(seen.value).toBe('"15,disc"');
      await session.navigate(undefined, pages.url('/secret', 'evil.test'), never);
      expect(await act({ kind: 'type', ref: await refOf('Pass'), secret: 'SHOP' })).toMatchObject({
        ok: false,
        error: expect.stringContaining('may not be typed at'),
      });
      await expect(act({ kind: 'type', ref: 'e1', secret: 'OTHER' })).rejects.toMatchObject({ code: 'denied' });
    });

    it('lists, opens and closes tabs up to the limit, with those that pages open', async () => {
      await visit('/');
      const first = (await session.tabs())[0]?.tabId;
      const opened = await act({ kind: 'click', ref: await refOf('New tab') });
      expect(opened.ok).toBe(true);
      await expect.poll(async () => (await session.tabs()).length).toBe(2);
      await session.open(undefined, never);
      const further = await Promise.allSettled(Array.from({ length: 500 }, () => session.open(undefined, never)));
      expect(further.filter((one) => one.status === 'rejected' && one.reason.code === 'precondition_failed')).toHaveLength(500);
      expect(await session.tabs()).toHaveLength(3);
      await session.focus(first ?? '');
      await act({ kind: 'click', ref: await refOf('New tab', first) });
      await act({ kind: 'wait', timeMs: 300 });
      expect(await session.tabs()).toHaveLength(3);
      for (const { tabId } of await session.tabs()) if (tabId !== first) await session.close(tabId);
      expect((await session.tabs()).map(({ tabId, active }) => ({ tabId, active }))).toEqual([{ tabId: first, active: true }]);
      const warnings = async () => (await session.console(undefined, 'warning')).map(({ text }) => text);
      await expect.poll(warnings).toContain('A further tab was refused: 3 are open (browser.maxTabs)');
      expect(await warnings()).toContain('careful');
    });

    it('draws pictures and PDF files, and pictures for a person who takes over', async () => {
      await visit('/big');
      const page = await session.screenshot(undefined, { fullPage: true, type: 'jpeg' }, never);
      expect(Math.max(page.width, page.height)).toBeLessThanOrEqual(2000);
      expect(page.bytes.subarray(0, 2).toString('hex')).toBe('ffd8');
      expect(await session.screenshot(undefined, {}, never)).toMatchObject({ width: 1280, height: 720, mimeType: 'image/png' });
      expect((await session.pdf(undefined, never)).subarray(0, 5).toString()).toBe('%PDF-');
      const { snapshot, truncated } = await session.snapshot(undefined, { maxChars: 1000 }, never);
      expect([snapshot.length <= 1000, truncated]).toEqual([true, true]);
      await visit('/secret');
      const view = await session.view(undefined, 0, never);
      expect(view).toMatchObject({ width: 1280, height: 720, title: 'In', held: false, jpeg: expect.any(String) });
      await session.input([
        { type: 'click', x: 80, y: 18, clicks: 1 },
        { type: 'text', text: 'by hand' },
      ]);
      expect(session.isHeld).toBe(true);
      expect((await act({ kind: 'evaluate', expression: 'p.value' })).value).toBe('"by hand"');
      session.hold(false);
    });

    it('covers a typed secret in every picture, wherever the page shows it', async () => {
      const pictures = async () => {
        const { jpeg: live = '' } = await session.view(undefined, 0, never);
        return {
          shot: (await session.screenshot(undefined, {}, never)).bytes.toString('base64'),
          recorded: (await session.glance(undefined, [], true)).jpeg,
          live,
        };
      };
      const typed = async (request: { readonly text: string } | { readonly secret: string }) => {
        await visit('/echo');
        expect(await act({ kind: 'type', ref: await refOf('Secret'), ...request })).toMatchObject({ ok: true });
        const before = await page();
        const drawn = await pictures();
        expect(await page()).toEqual(before);
        return drawn;
      };
      const page = async () => {
        const { value = '' } = await act({ kind: 'evaluate', expression: 'document.documentElement.outerHTML + frames[0].document.body.innerHTML' });
        return value.replaceAll(String.raw` style=\"\"`, '').split('<');
      };
      const open = await typed({ text: 'Abcdefg+Abcdefg' });
      const shop = await typed({ secret: 'SHOP' });
      const bank = await typed({ secret: 'BANK' });
      // The pictures do not depend on the secret, although they do on the text of a page.
      expect(bank).toEqual(shop);
      for (const kind of ['shot', 'recorded', 'live'] as const) expect([kind, shop[kind] === open[kind]]).toEqual([kind, false]);
      // Drawn at the same time, no picture uncovers another one.
      for (const each of await Promise.all([pictures(), pictures()])) expect(each).toEqual(bank);
    });

    it('covers a secret typed into a frame of another site, also in PDF files; a short one in its field', async () => {
      const drawn = async (request: { readonly text: string } | { readonly secret: string }) => {
        await visit('/outer');
        await act({ kind: 'wait', loadState: 'load' });
        expect(await act({ kind: 'type', ref: await refOf('Secret'), ...request })).toMatchObject({ ok: true });
        return {
          shot: (await session.screenshot(undefined, {}, never)).bytes.toString('base64'),
          recorded: (await session.glance(undefined, [], true)).jpeg,
          live: (await session.view(undefined, 0, never)).jpeg,
        };
      };
      const open = await drawn({ text: 'Abcdefg+Abcdefg' });
      const shop = await drawn({ secret: 'SHOP' });
      const bank = await drawn({ secret: 'BANK' });
      for (const kind of ['shot', 'recorded', 'live'] as const)
        expect([kind, shop[kind] === bank[kind], shop[kind] === open[kind]]).toEqual([kind, true, false]);
      const { extractText, getDocumentProxy } = await import('unpdf');
      const { text } = await extractText(await getDocumentProxy(Uint8Array.from(await session.pdf(undefined, never))), { mergePages: true });
      expect(text).toMatch(/You typed in •{15} words.*Always here/s);
      expect(text).not.toMatch(/Wxyz|W%/);
      await act({ kind: 'type', ref: await refOf('Secret'), secret: 'PIN' });
      const { snapshot } = await session.snapshot(undefined, {}, never);
      expect(snapshot).toMatch(/textbox "Secret".*: ••••/);
      expect(snapshot).not.toMatch(/textbox.*: "?0071/);
    });

    it('reports pages that hang, do not load or crash, and continues', async () => {
      await expect(visit('/slow')).rejects.toMatchObject({ code: 'timeout' });
      await visit('/loop');
      const hang = await refOf('Hang');
      expect(await act({ kind: 'click', ref: hang, timeoutMs: 1000 })).toMatchObject({ ok: false });
      await session.close(undefined);
      await visit('/done');
      expect(await title()).toBe('Done');
    });

    it('names a page or browser that takes too much memory, and ends one that nobody uses', async () => {
      let [laterMs, checks] = [0, 0];
      const clock = { ...systemClock, now: () => systemClock.now(), monotonic: () => systemClock.monotonic() + laterMs };
      await using own = await openBrowsers({
        dial: pages.dial,
        config: { memoryMb: 512, idleMs: 300_000 },
        // Its checks come without a wait.
        processClock: {
          ...clock,
          after(ms: number, run: () => void) {
            if (ms !== 10_000) return systemClock.after(ms, run);
            checks += 1;
            return systemClock.after(20, run);
          },
        },
      });
      const hungry = await own.pool.start('default');
      await hungry.navigate(undefined, pages.url('/hungry'), never);
      const { refs } = await hungry.snapshot(undefined, {}, never);
      const [eat = ''] = Object.keys(refs).filter((ref) => refs[ref]?.name === 'Eat');
      const startedAt = performance.now();
      const answer = await hungry.act(undefined, { kind: 'click', ref: eat }, own.context).catch((error: unknown) => error);
      expect(JSON.stringify(answer instanceof Error ? answer.message : answer)).toMatch(/memory/);
      expect(performance.now() - startedAt).toBeLessThan(10_000);
      const again = await own.pool.start('default');
      expect(await again.navigate(undefined, pages.url('/done'), never)).toMatchObject({ title: 'Done' });
      laterMs = 299_000;
      await again.tabs();
      laterMs = 598_000;
      const before = checks;
      await expect.poll(() => checks).toBeGreaterThan(before + 2);
      expect(own.pool.list()).toEqual(['default']);
      laterMs = 600_000;
      await expect.poll(() => own.pool.list(), { timeout: 10_000 }).toEqual([]);
    });

    it('fails what is asked of a killed browser at once; the next call starts another with the same logins', async () => {
      await visit('/');
      await browsers.pool.stop('default');
      session = await browsers.pool.start('default');
      await visit('/');
      expect((await act({ kind: 'evaluate', expression: 'document.cookie' })).value).toBe('"seen=1"');
      const waiting = act({ kind: 'wait', timeMs: 20_000, timeoutMs: 30_000 });
      await new Promise((resolve) => setTimeout(resolve, 100));
      for (const pid of chromiums(browsers.base)) kill(pid);
      await expect(waiting).rejects.toMatchObject({ code: 'unavailable', message: expect.stringContaining('The browser is gone') });
      await session.gone;
      await expect.poll(() => browsers.pool.list()).toEqual([]);
      await expect.poll(() => existsSync(join(browsers.base, 'browser/default'))).toBe(false);
      const [one, two] = await Promise.all([browsers.pool.start('default'), browsers.pool.start('default')]);
      expect(one).toBe(two);
      session = one;
      await visit('/done');
      await browsers.pool.stop('default', { forget: true });
      expect(browsers.profiles.size).toBe(0);
      expect(chromiums(browsers.base)).toEqual([]);
    });
  },
);

/** Kills a process, unless it ended with another one. */
function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Processes of browsers that write their downloads below this folder. */
function chromiums(base: string): number[] {
  return readdirSync('/proc')
    .filter((pid) => {
      try {
        return (
          /^\d+$/.test(pid) &&
          readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('--user-data-dir=/tmp/profile') &&
          readFileSync(`/proc/${pid}/mountinfo`, 'utf8').includes(base)
        );
      } catch {
        return false;
      }
    })
    .map(Number);
}
