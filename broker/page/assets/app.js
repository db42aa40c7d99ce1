// What pages do besides plain HTML and htmx. Everything works without it.
(function () {
  "use strict";

  // Copy: <button data-copy="#id-of-text">.
  document.addEventListener("click", function (e) {
    var button = e.target.closest("[data-copy]");
    if (!button) return;
    var source = document.querySelector(button.dataset.copy);
    if (!source || !navigator.clipboard) return;
    navigator.clipboard.writeText(source.textContent.trim()).then(function () {
      var label = button.textContent;
      button.textContent = button.dataset.done;
      setTimeout(function () { button.textContent = label; }, 1500);
    });
  });

  // Only one question (details.confirm) or menu is open; Escape and a click
  // elsewhere close it.
  function closeAll(except) {
    document.querySelectorAll("details.confirm[open], details.menu[open]").forEach(function (d) {
      if (!except || !d.contains(except)) d.open = false;
    });
  }
  document.addEventListener("click", function (e) {
    if (e.target.closest("[data-cancel]")) { closeAll(); return; }
    closeAll(e.target);
  });
  document.addEventListener("keydown", function (e) {
    if (e.key !== "Escape") return;
    var open = document.querySelector("details.confirm[open], details.menu[open]");
    if (!open) return;
    closeAll();
    open.querySelector("summary").focus();
  });

  // A form that needs no answer: <form data-submit>. Its button is for browsers
  // without scripts.
  var now = document.querySelector("form[data-submit]");
  if (now) now.requestSubmit();

  // A form is sent once: a second click does nothing.
  document.addEventListener("submit", function (e) {
    if (e.target.dataset.sent) { e.preventDefault(); return; }
    e.target.dataset.sent = "1";
    setTimeout(function () { delete e.target.dataset.sent; }, 4000);
  });
  window.addEventListener("pageshow", function () {
    document.querySelectorAll("form[data-sent]").forEach(function (f) { delete f.dataset.sent; });
  });

  // Show what is typed into a password field: <button data-reveal="#id">.
  document.addEventListener("click", function (e) {
    var button = e.target.closest("[data-reveal]");
    if (!button) return;
    var field = document.querySelector(button.dataset.reveal);
    var show = field.type === "password";
    field.type = show ? "text" : "password";
    button.setAttribute("aria-pressed", String(show));
    button.textContent = show ? button.dataset.hide : button.dataset.show;
    field.focus();
  });
  document.querySelectorAll("[data-reveal], [data-copy]").forEach(function (b) { b.hidden = false; });
})();
