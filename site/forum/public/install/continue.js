// Sends the continue form by itself, so that an upgrade needs no clicking.
document.querySelector("form.continue")?.submit();
