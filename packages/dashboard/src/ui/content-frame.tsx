import { useEffect, useRef } from 'react';
import { writeInto } from './write-into.ts';

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
