import { t } from '../language.ts';
import { type ReactNode, useEffect, useId, useRef } from 'react';
import { Button, Failure, IconButton } from './parts.tsx';
import { useAction } from '../data/use-action.ts';

/** A native modal dialog: it traps the focus, closes with Escape and restores the focus. */
export function Dialog({
  title,
  onClose,
  children,
  wide = false,
}: {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
  readonly wide?: boolean;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const element = dialog.current;
    const opener = document.activeElement;
    element?.showModal();
    return () => {
      element?.close();
      // The opener may have been deleted; keep the focus in the page then.
      const back = opener?.isConnected === true && opener !== document.body ? opener : document.getElementById('content');
      if (back instanceof HTMLElement) back.focus();
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      className={wide ? 'dialog wide' : 'dialog'}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <header>
        <h2 id={id}>{title}</h2>
        <IconButton icon="close" label={t('Close')} onClick={onClose} />
      </header>
      {children}
    </dialog>
  );
}

/** Asks for confirmation of an action that can't be undone. */
export function Confirm({
  title,
  children,
  action,
  run,
  onClose,
}: {
  readonly title: string;
  readonly children: ReactNode;
  readonly action: string;
  readonly run: () => Promise<void>;
  readonly onClose: () => void;
}) {
  const confirm = useAction();
  return (
    <Dialog title={title} onClose={onClose}>
      <div className="dialog-body">{children}</div>
      {confirm.error !== undefined && <Failure error={confirm.error} />}
      <footer>
        <Button onClick={onClose}>{t('Cancel')}</Button>
        <Button look="danger" disabled={confirm.busy} onClick={() => confirm.run(() => run().then(onClose))}>
          {confirm.busy ? t('Working…') : action}
        </Button>
      </footer>
    </Dialog>
  );
}
