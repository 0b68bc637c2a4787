<?php
/** Loads the site's WordPress on the command line. */
$_SERVER['HTTP_HOST'] = 'www.example.org';
$_SERVER['REQUEST_METHOD'] = 'GET';
$_SERVER['REQUEST_URI'] = '/';
$_SERVER['SERVER_PROTOCOL'] = 'HTTP/1.1';
ini_set('memory_limit', '2G');
set_time_limit(0);
mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
require (getenv('PLIMSOLL_DATA') ?: '/data') . '/wordpress/wp-load.php';
