/** The route of the empty page for foreign content: it has its own origin and no network. */
const framePath = '/frame';

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
