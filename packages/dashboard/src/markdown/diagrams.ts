import mermaidAddress from '@mermaid-js/tiny/dist/mermaid.tiny.js?url';
import { writeInto } from '../ui/write-into.ts';

/** A drawn diagram, or why it could not be drawn. */
export type Drawn = { readonly svg: string } | { readonly error: string };

interface Painter {
  draw(code: string, isDark: boolean): Promise<Drawn>;
}

const maxCode = 20_000;
const drawWithinMs = 20_000;
const maxKept = 50;

let painter: Promise<Painter> | undefined;
const drawn = new Map<string, Promise<Drawn>>();

/**
 * Draws a diagram. The library runs in a hidden frame without network and with its own origin: it may build markup, which this page
 * may not. What comes back is shown as a picture, which runs nothing.
 */
export function drawDiagram(code: string, isDark: boolean): Promise<Drawn> {
  if (code.length > maxCode) return Promise.resolve({ error: `It is longer than ${maxCode} characters.` });
  const key = `${isDark} ${code}`;
  const known = drawn.get(key);
  if (known !== undefined) return known;
  painter ??= openPainter();
  const drawing = painter.then((one) => one.draw(code, isDark));
  drawn.set(key, drawing);
  for (const oldest of drawn.keys()) {
    if (drawn.size <= maxKept) break;
    drawn.delete(oldest);
  }
  drawing.catch(() => {
    // The library could not be fetched: the next diagram tries again.
    painter = undefined;
    drawn.delete(key);
  });
  return drawing;
}

async function openPainter(): Promise<Painter> {
  const response = await fetch(mermaidAddress);
  if (!response.ok) throw new Error('The gateway does not serve the library that draws diagrams.');
  const library = await response.text();
  const frame = document.createElement('iframe');
  frame.setAttribute('sandbox', 'allow-scripts');
  frame.setAttribute('aria-hidden', 'true');
  frame.tabIndex = -1;
  frame.title = 'Diagrams';
  // It has a size, because texts are measured in it.
  frame.className = 'painter';
  document.body.append(frame);

  const waiting = new Map<number, (drawn: Drawn) => void>();
  const { promise: ready, resolve: onReady, reject: onFailed } = Promise.withResolvers<void>();
  const timer = setTimeout(() => onFailed(new Error('The frame that draws diagrams does not respond.')), drawWithinMs);
  addEventListener('message', ({ source, data }: MessageEvent<unknown>) => {
    if (source !== frame.contentWindow || typeof data !== 'object' || data === null) return;
    if ('ready' in data) onReady();
    if (!('id' in data) || typeof data.id !== 'number') return;
    const svg = 'svg' in data && typeof data.svg === 'string' ? data.svg : undefined;
    const error = 'error' in data && typeof data.error === 'string' ? data.error : 'It could not be drawn.';
    waiting.get(data.id)?.(svg === undefined ? { error } : { svg });
    waiting.delete(data.id);
  });
  writeInto(frame, painterPage(library));
  try {
    await ready;
  } catch (error) {
    frame.remove();
    throw error;
  } finally {
    clearTimeout(timer);
  }

  let count = 0;
  return {
    draw(code, isDark) {
      count += 1;
      const id = count;
      return new Promise((resolve) => {
        const late = setTimeout(() => resolve({ error: 'Drawing it takes too long.' }), drawWithinMs);
        waiting.set(id, (result) => {
          clearTimeout(late);
          resolve(result);
        });
        frame.contentWindow?.postMessage({ id, code, isDark }, '*');
      });
    },
  };
}

/** Draws what it is sent, one diagram after the other. Labels are texts of SVG, because a picture shows no HTML. */
const script = `
let queue = Promise.resolve();
addEventListener('message', ({ source, data }) => {
  if (source !== parent) return;
  queue = queue.then(async () => {
    try {
      mermaid.initialize({
        startOnLoad: false, securityLevel: 'strict', suppressErrorRendering: true, htmlLabels: false, flowchart: { htmlLabels: false },
        class: { htmlLabels: false }, theme: data.isDark ? 'dark' : 'default', fontFamily: 'system-ui, sans-serif',
      });
      const { svg } = await mermaid.render('diagram-' + data.id, data.code);
      // A picture is XML, and has no width to be relative to.
      const holder = document.createElement('div');
      holder.innerHTML = svg;
      const element = holder.firstElementChild;
      const [, , width, height] = (element.getAttribute('viewBox') ?? '').split(' ');
      if (width && height) {
        element.setAttribute('width', width);
        element.setAttribute('height', height);
      }
      parent.postMessage({ id: data.id, svg: new XMLSerializer().serializeToString(element) }, '*');
    } catch (error) {
      document.body.replaceChildren();
      parent.postMessage({ id: data.id, error: String(error && error.message || error).split(/\\n|Expecting/)[0].slice(0, 200) }, '*');
    }
  });
});
parent.postMessage({ ready: true }, '*');
`;

function painterPage(library: string): string {
  const inScript = (text: string): string => text.replaceAll(/<\/(?=script)/gi, '<\\/');
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>Diagrams</title><body><script>${inScript(library)}</script><script>${script}</script></body></html>`;
}
