import { useEffect, useRef } from 'react';

/** The route of the empty page for foreign content: it has its own origin and no network. */
const framePath = '/frame';

/**
 * Shows a page that nobody has checked, in a frame that can reach neither this page nor a network. Write `html` into it once it is
 * loaded; another text needs another `key`.
 */
export function ContentFrame({ html, title }: { readonly html: string; readonly title: string }) {
  const frame = useRef<HTMLIFrameElement>(null);
  useEffect(() => {
    const { current: element } = frame;
    if (element !== null) return writeInto(element, html);
    return undefined;
  }, [html]);
  return <iframe ref={frame} className="content-frame" title={title} sandbox="allow-scripts" referrerPolicy="no-referrer" />;
}

/** Loads the empty page into a frame, and then its content. Returns a function that cancels it. */
export function writeInto(frame: HTMLIFrameElement, html: string): () => void {
  const onLoad = (): void => {
    // The content loads too.
    frame.removeEventListener('load', onLoad);
    // Its origin is opaque, so that no other address than any can be named.
    frame.contentWindow?.postMessage(html, '*');
  };
  frame.addEventListener('load', onLoad);
  frame.src = framePath;
  return () => frame.removeEventListener('load', onLoad);
}
