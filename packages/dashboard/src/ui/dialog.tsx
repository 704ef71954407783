import { t } from '../language.ts';
import { type ReactNode, useId, useLayoutEffect, useRef } from 'react';
import { focusedElement, returnFocus } from './keep-focus.ts';
import { Button, Failure, IconButton } from './parts.tsx';
import { useAction } from '../data/use-action.ts';

/** The first field below the heading. */
const firstField = 'header ~ * :is(input, select, textarea):not(:disabled, [readonly])';

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
  useLayoutEffect(() => {
    const element = dialog.current;
    const opener = focusedElement();
    element?.showModal();
    // Otherwise the first button, which closes it. On a phone the keyboard would cover the form.
    if (matchMedia('(hover: hover)').matches)
      (element?.querySelector<HTMLElement>('[data-focus-home]') ?? element?.querySelector<HTMLElement>(firstField))?.focus();
    return () => {
      if (opener !== undefined) returnFocus(opener);
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
      onKeyDown={(event) => {
        if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey) || event.repeat || event.nativeEvent.isComposing) return;
        event.preventDefault();
        // A dialog that this one opened reports its keys here too.
        event.stopPropagation();
        // Also in a field of several lines, where Enter alone begins one. What deletes looks different, and needs its own button.
        dialog.current?.querySelector<HTMLElement>('footer .button.primary')?.click();
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
      {/* The second click of a double click on what opened this dialog was not meant for a button of it. */}
      <footer onClickCapture={(event) => event.detail > 1 && event.stopPropagation()}>
        <Button onClick={onClose}>{t('Cancel')}</Button>
        <Button look="danger" disabled={confirm.busy} onClick={() => confirm.run(() => run().then(onClose))}>
          {confirm.busy ? t('Working…') : action}
        </Button>
      </footer>
    </Dialog>
  );
}
